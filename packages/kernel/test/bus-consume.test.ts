import { MortiseError } from "@mortise/contracts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../../testkit/src/index.js";
import type { Bus } from "../src/bus/bus.js";
import type { Meta } from "../src/bus/types.js";
import { deadLetter, messagesIn, openBus, until, withWork } from "./bus-fixture.js";
import { type Note, NoteSchema } from "./gen/probe_pb.js";

let nats: NatsFixture;
let bus: Bus;

beforeAll(async () => {
  nats = await startNats();
  bus = await openBus(nats);
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
});

async function put(stream: string, from: number, to = from): Promise<void> {
  for (let number = from; number <= to; number++) {
    const subject = `${stream.toLowerCase()}.a`;
    await bus.publish({ subject, schema: NoteSchema, message: { number }, dedupeId: `${stream}/${number}` });
  }
}

function consume(
  stream: string,
  handle: (note: Note, meta: Meta) => Promise<void>,
  concurrency = 4,
  on = bus,
) {
  return on.consume({ stream, durable: "worker", schema: NoteSchema, concurrency, handle });
}

const retryable = () =>
  new MortiseError({ code: "MORTISE_SANDBOX_LOST", message: "try again", retryAfterMs: 20 });

test("D1: what a handler finished is acknowledged and gone; the order of one worker is the stream's", async () => {
  await withWork(bus, "PLAIN");
  await put("PLAIN", 1, 50);
  const seen: number[] = [];
  const consuming = await consume("PLAIN", async (note) => void seen.push(note.number), 1);
  await until(() => seen.length === 50);
  await consuming.stop();
  expect(seen).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  await until(async () => (await messagesIn(bus, "PLAIN")) === 0);
});

test("no more run at once than asked, and a second process gets its share", async () => {
  await withWork(bus, "SHARED");
  await put("SHARED", 1, 12);
  const release: (() => void)[] = [];
  const taken: Record<string, number> = { first: 0, second: 0 };
  const hold = (who: string) => () => {
    taken[who]!++;
    return new Promise<void>((resolve) => release.push(resolve));
  };
  const other = await openBus(nats, "other");
  const first = await consume("SHARED", hold("first"), 3);
  await until(() => taken.first === 3);
  const second = await consume("SHARED", hold("second"), 5, other);
  await until(() => taken.second === 5);
  const { num_ack_pending: pending } = await bus.manager.consumers.info("SHARED", "worker");
  expect(pending).toBe(8);
  expect(taken).toEqual({ first: 3, second: 5 });
  const releasing = setInterval(() => {
    for (const go of release.splice(0)) go();
  }, 5);
  await until(async () => (await messagesIn(bus, "SHARED")) === 0);
  await Promise.all([first.stop(), second.stop()]);
  clearInterval(releasing);
  expect(taken.first! + taken.second!).toBe(12);
  await other.close();
});

test("D2: a retryable failure comes again, the last delivery becomes a dead letter", async () => {
  await withWork(bus, "RETRY");
  await put("RETRY", 1, 2);
  const deliveries: Record<number, number[]> = { 1: [], 2: [] };
  const consuming = await consume("RETRY", async (note, meta) => {
    deliveries[note.number]!.push(meta.deliveries);
    if (note.number === 1 || meta.deliveries === 1) throw retryable();
  });
  const letter = await deadLetter(bus, "RETRY");
  expect(letter).toMatchObject({
    stream: "RETRY",
    consumer: "worker",
    subject: "retry.a",
    code: "MORTISE_SANDBOX_LOST",
  });
  expect(letter.reason).toContain("try again");
  await until(async () => (await messagesIn(bus, "RETRY")) === 0);
  expect(deliveries).toEqual({ 1: [1, 2, 3], 2: [1, 2] });
  await consuming.stop();
});

test("D2: any other failure is a dead letter at once, with the original bytes", async () => {
  await withWork(bus, "FATAL");
  await put("FATAL", 7);
  let calls = 0;
  const consuming = await consume("FATAL", async () => {
    calls++;
    throw new TypeError("a bug");
  });
  const letter = await deadLetter(bus, "FATAL");
  expect(letter).toMatchObject({ sequence: 1n, code: "MORTISE_TRANSPORT_INTERNAL" });
  expect(letter.reason).toContain("a bug");
  expect([...letter.payload]).toEqual([16, 7]);
  await until(async () => (await messagesIn(bus, "FATAL")) === 0);
  expect(calls).toBe(1);
  await consuming.stop();
});

test("D3: what does not decode is never handled, and what follows it is", async () => {
  await withWork(bus, "POISON");
  await bus.publisher.publish({ subject: "poison.a", bytes: Buffer.from([0xff, 0xff]), messageId: "poison" });
  await put("POISON", 1);
  const seen: number[] = [];
  const consuming = await consume("POISON", async (note) => void seen.push(note.number));
  const letter = await deadLetter(bus, "POISON");
  expect(letter).toMatchObject({ code: "MORTISE_TRANSPORT_DECODE", subject: "poison.a" });
  expect(letter.reason).toContain("poison.a at sequence 1");
  await until(async () => (await messagesIn(bus, "POISON")) === 0);
  expect(seen).toEqual([1]);
  await consuming.stop();
});

test("a long handler keeps its message", async () => {
  await withWork(bus, "LONG", { ackWaitMs: 300 });
  await put("LONG", 1);
  let deliveries = 0;
  const consuming = await consume("LONG", async () => {
    deliveries++;
    await new Promise((resolve) => setTimeout(resolve, 1_200));
  });
  await until(async () => (await messagesIn(bus, "LONG")) === 0);
  expect(deliveries).toBe(1);
  await consuming.stop();
});

test("a stop gives back what it cuts off, and another process finishes it", async () => {
  await withWork(bus, "STOP");
  await put("STOP", 1, 2);
  let started = 0;
  const consuming = await consume("STOP", async (_, meta) => {
    started++;
    await new Promise((_resolve, reject) =>
      meta.signal.addEventListener("abort", () => reject(meta.signal.reason)),
    );
  });
  await until(() => started === 2);
  await consuming.stop(10);
  const seen: number[] = [];
  const next = await consume("STOP", async (note) => void seen.push(note.number));
  await until(async () => (await messagesIn(bus, "STOP")) === 0);
  expect(seen.sort()).toEqual([1, 2]);
  await next.stop();
});

test("consuming goes on after the server was killed", async () => {
  await withWork(bus, "KILLED", { ackWaitMs: 1_000, maxDeliver: -1 });
  const seen = new Set<number>();
  const consuming = await consume("KILLED", async (note) => void seen.add(note.number));
  await put("KILLED", 1, 10);
  await until(() => seen.size === 10);
  await nats.kill();
  await nats.restart();
  await put("KILLED", 11, 20);
  await until(async () => seen.size === 20 && (await messagesIn(bus, "KILLED")) === 0);
  await consuming.stop();
}, 60_000);

test("a durable that does not exist is named", async () => {
  const consuming = bus.consume({
    stream: "PLAIN",
    durable: "nobody",
    schema: NoteSchema,
    concurrency: 1,
    handle: async () => {},
  });
  await expect(consuming).rejects.toMatchObject({
    code: "MORTISE_TRANSPORT_NOT_FOUND",
    message: expect.stringContaining("PLAIN/nobody"),
  });
});
