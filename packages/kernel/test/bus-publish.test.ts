import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../../testkit/src/index.js";
import { type Bus, connectBus } from "../src/bus/bus.js";
import { ensureTopology } from "../src/bus/topology.js";
import { createLog } from "../src/log.js";
import { currentTraceParent, startTracing, withTrace } from "../src/telemetry.js";
import { MIB, messagesIn, openBus, stream, until } from "./bus-fixture.js";
import { NoteSchema } from "./gen/probe_pb.js";

let nats: NatsFixture;
let bus: Bus;

beforeAll(async () => {
  startTracing({ service: "test" });
  nats = await startNats();
  bus = await openBus(nats);
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
});

const note = (subject: string, text: string, dedupeId: string, expectLastSubjectSequence?: number) =>
  bus.publish({
    subject,
    schema: NoteSchema,
    message: { text },
    dedupeId,
    ...(expectLastSubjectSequence === undefined ? {} : { expectLastSubjectSequence }),
  });

describe("publishing", () => {
  beforeAll(() => ensureTopology(bus, { streams: [stream("FACTS")] }));

  test("the same id is stored once and says so", async () => {
    const first = await note("facts.a", "one", "facts/1");
    const again = await note("facts.a", "one", "facts/1");
    expect(first.duplicate).toBe(false);
    expect(again).toEqual({ sequence: first.sequence, duplicate: true });
  });

  test("a stale expected sequence is a conflict, and a repeat of a stored message is not", async () => {
    const first = await note("facts.b", "one", "facts/b1", 0);
    await expect(note("facts.b", "rival", "facts/b-rival", 0)).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_SEQUENCE_CONFLICT",
    });
    const second = await note("facts.b", "two", "facts/b2", first.sequence);
    expect(await note("facts.b", "two", "facts/b2", first.sequence)).toEqual({ ...second, duplicate: true });
  });

  test("a stored message is read back by sequence and as the last of its subject", async () => {
    const { sequence } = await note("facts.c", "kept", "facts/c1");
    expect((await bus.at("FACTS", sequence, NoteSchema)).text).toBe("kept");
    expect(await bus.last("FACTS", "facts.c", NoteSchema)).toMatchObject({
      sequence,
      message: { text: "kept" },
    });
    expect(await bus.last("FACTS", "facts.none", NoteSchema)).toBeUndefined();
    await expect(bus.at("FACTS", 1_000_000, NoteSchema)).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_NOT_FOUND",
    });
  });

  test("a message carries its type and the trace it was published in", async () => {
    const message = create(NoteSchema, { text: "traced" });
    const options = { subject: "facts.d", schema: NoteSchema, message, dedupeId: "facts/d1" };
    const { sequence } = await withTrace("run/trial", () => bus.publish(options));
    const seen: (string | undefined)[] = [];
    const following = await bus.follow({
      stream: "FACTS",
      filters: ["facts.d"],
      from: { sequence },
      schema: NoteSchema,
      onMessage: (_, meta) =>
        void seen.push(meta.headers?.get("Mortise-Type"), meta.headers?.get("traceparent")),
    });
    await following.caughtUp;
    await following.stop();
    expect(seen).toEqual(["probe.Note", withTrace("run/trial", currentTraceParent)]);
  });
});

test("a full stream refuses, says retry, and does not burn the id", async () => {
  await ensureTopology(bus, { streams: [stream("SMALL", { maxBytes: 4_096 })] });
  const big = "x".repeat(3_000);
  await note("small.a", big, "small/1");
  await expect(note("small.a", big, "small/2")).rejects.toMatchObject({
    code: "MORTISE_TRANSPORT_FULL",
    disposition: "retry",
  });
  await bus.manager.streams.purge("SMALL");
  expect((await note("small.a", big, "small/2")).duplicate).toBe(false);
});

test("publishes and followers survive a killed server", async () => {
  await ensureTopology(bus, { streams: [stream("CRASH")] });
  const seen: number[] = [];
  const following = await bus.follow({
    stream: "CRASH",
    filters: ["crash.>"],
    from: "first",
    schema: NoteSchema,
    onMessage: (message) => void seen.push(message.number),
  });
  const put = (number: number) =>
    bus.publish({ subject: "crash.a", schema: NoteSchema, message: { number }, dedupeId: `crash/${number}` });
  for (let i = 1; i <= 20; i++) await put(i);
  await nats.kill();
  const during = Array.from({ length: 20 }, (_, i) => put(21 + i));
  await nats.restart();
  await Promise.all(during);
  for (let i = 41; i <= 60; i++) await put(i);
  await until(() => seen.length >= 60);
  expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  expect(await messagesIn(bus, "CRASH")).toBe(60);
  await following.stop();
}, 60_000);

describe("topology", () => {
  test("is idempotent and widens what may change", async () => {
    const definition = stream("WIDE");
    await ensureTopology(bus, { streams: [definition] });
    await note("wide.a", "kept", "wide/1");
    await ensureTopology(bus, { streams: [definition] });
    await ensureTopology(bus, { streams: [{ ...definition, maxBytes: 128 * MIB }] });
    const info = await bus.manager.streams.info("WIDE");
    expect(info.config.max_bytes).toBe(128 * MIB);
    expect(info.state.messages).toBe(1);
  });

  test("refuses a definition that contradicts what is stored", async () => {
    const definition = stream("FIXED");
    await ensureTopology(bus, { streams: [definition] });
    const changed = ensureTopology(bus, { streams: [{ ...definition, retention: "workqueue" }] });
    await expect(changed).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_TOPOLOGY",
      message: expect.stringContaining("FIXED: retention is limits, needed is workqueue"),
    });
  });

  test("refuses a stream whose subjects another has", async () => {
    const thief = stream("THIEF", { subjects: ["facts.>"] });
    await expect(ensureTopology(bus, { streams: [thief] })).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_TOPOLOGY",
    });
  });
});

describe("a connection", () => {
  const log = createLog({ service: "test", level: "silent" });

  test("to a server that is too old is refused with the version", async () => {
    const connect = connectBus({
      url: nats.url,
      user: "admin",
      password: "x",
      name: "t",
      log,
      minApiLevel: 99,
    });
    await expect(connect).rejects.toMatchObject({
      code: "MORTISE_OPERATOR_NATS_TOO_OLD",
      message: expect.stringMatching(/runs nats-server 2\.\d+/),
    });
  });

  test("to nobody fails after its time, without showing credentials", async () => {
    const url = "nats://someone:hidden@127.0.0.1:1";
    const error = await connectBus({
      url,
      user: "u",
      password: "p",
      name: "t",
      log,
      connectTimeoutMs: 300,
    }).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: "MORTISE_TRANSPORT_UNAVAILABLE", disposition: "retry" });
    expect((error as Error).message).not.toContain("hidden");
  });
});
