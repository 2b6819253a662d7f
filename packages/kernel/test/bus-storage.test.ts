import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type NatsFixture, startNats } from "../../testkit/src/index.js";
import type { Bus } from "../src/bus/bus.js";
import type { Kv } from "../src/bus/kv.js";
import { Lease } from "../src/bus/lease.js";
import { ensureTopology } from "../src/bus/topology.js";
import { ManualClock } from "../src/clock.js";
import { DEAD_LETTERS, openBus, stream, until } from "./bus-fixture.js";
import { NoteSchema } from "./gen/probe_pb.js";

const TTL_MS = 1_500;
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (value: Uint8Array) => new TextDecoder().decode(value);

let nats: NatsFixture;
let bus: Bus;
let facts: Kv;
let leases: Kv;

beforeAll(async () => {
  nats = await startNats();
  bus = await openBus(nats);
  await ensureTopology(bus, {
    streams: [stream("LOG"), DEAD_LETTERS],
    kv: [
      { bucket: "facts", history: 4, ttlMs: 0, key: "", purpose: "test" },
      { bucket: "leases", history: 1, ttlMs: TTL_MS, key: "", purpose: "test" },
    ],
    objects: [{ bucket: "things", name: "", purpose: "test" }],
  });
  facts = await bus.kv("facts");
  leases = await bus.kv("leases");
});
afterAll(async () => {
  await bus?.close();
  await nats?.stop();
});

describe("a KV bucket", () => {
  test("writes by compare-and-set: one of two wins", async () => {
    const first = await facts.create("run.a", bytes("1"));
    expect(first).toBeGreaterThan(0);
    expect(await facts.create("run.a", bytes("rival"))).toBeUndefined();
    const [x, y] = await Promise.all([
      facts.update("run.a", bytes("x"), first!),
      facts.update("run.a", bytes("y"), first!),
    ]);
    expect([x, y].filter((revision) => revision !== undefined)).toHaveLength(1);
    expect(text((await facts.get("run.a"))!.value)).toBe(x === undefined ? "y" : "x");
  });

  test("a deleted key is absent and can be created again", async () => {
    const first = await facts.create("run.b", bytes("1"));
    await facts.delete("run.b");
    expect(await facts.get("run.b")).toBeUndefined();
    expect(await facts.keys("run.b")).toEqual([]);
    expect(await facts.create("run.b", bytes("2"))).toBeGreaterThan(first!);
  });

  test("lists what is present under a filter", async () => {
    for (const key of ["list.a", "list.b", "list.c"]) await facts.put(key, bytes(key));
    await facts.delete("list.b");
    expect((await facts.keys("list.*")).sort()).toEqual(["list.a", "list.c"]);
    expect(await facts.keys("nothing.>")).toEqual([]);
    expect(text((await facts.entries("list.*")).get("list.a")!.value)).toBe("list.a");
  });

  test("a watcher sees what is there, changes, deletions and expiries", async () => {
    await leases.put("watched.old", bytes("old"));
    const seen: string[] = [];
    const watching = await leases.watch("watched.*", (key, entry) => {
      seen.push(`${key}=${entry === undefined ? "-" : text(entry.value)}`);
    });
    await watching.caughtUp;
    expect(seen).toEqual(["watched.old=old"]);
    await leases.put("watched.new", bytes("new"));
    // A bucket keeps a key's last entry only: a deletion that follows at once would hide the change.
    await until(() => seen.includes("watched.new=new"));
    await leases.delete("watched.new");
    await until(() => seen.includes("watched.old=-"));
    expect(seen.slice(0, 3)).toEqual(["watched.old=old", "watched.new=new", "watched.new=-"]);
    await watching.stop();
  });
});

describe("a lease", () => {
  test("is held by one, and passes with a higher fence when released", async () => {
    const first = await Lease.acquire(leases, "released", { holder: "first", ttlMs: TTL_MS });
    const waiting = Lease.acquire(leases, "released", { holder: "second", ttlMs: TTL_MS });
    const winner = await Promise.race([waiting.then(() => "second"), first.lost.then(() => "lost"), tick()]);
    expect(winner).toBe("tick");
    await first.release();
    const second = await waiting;
    expect(second.fence).toBeGreaterThan(first.fence);
    await second.release();
  });

  test("is renewed for as long as its holder lives", async () => {
    const lease = await Lease.acquire(leases, "renewed", { holder: "first", ttlMs: TTL_MS });
    const rival = await bus.kv("leases");
    const deadline = performance.now() + 2 * TTL_MS;
    while (performance.now() < deadline) {
      expect(await rival.create("renewed", bytes("rival"))).toBeUndefined();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await lease.release();
  });

  test("L1: of a holder that fell silent is taken over, and the old one learns it", async () => {
    const stopped = new ManualClock();
    const first = await Lease.acquire(leases, "taken", { holder: "first", ttlMs: TTL_MS, clock: stopped });
    const second = await Lease.acquire(leases, "taken", { holder: "second", ttlMs: TTL_MS });
    expect(second.fence).toBeGreaterThan(first.fence);
    stopped.advance(TTL_MS / 3);
    await first.lost;
    await first.release();
    expect(await leases.get("taken")).toBeDefined();
    await second.release();
    expect(await leases.get("taken")).toBeUndefined();
  });

  test("L2: a holder cut off from the server learns it when the lifetime is over", async () => {
    const clock = new ManualClock();
    const lonely: Kv = { ...leases, create: async () => 5, update: () => new Promise(() => {}) };
    const lease = await Lease.acquire(lonely, "cut", { holder: "first", ttlMs: 900, clock });
    let isLost = false;
    void lease.lost.then(() => {
      isLost = true;
    });
    clock.advance(300);
    clock.advance(599);
    await tick();
    expect(isLost).toBe(false);
    clock.advance(1);
    await lease.lost;
    expect(clock.now()).toBe(900);
  });

  test("waiting for it can be given up", async () => {
    const lease = await Lease.acquire(leases, "given-up", { holder: "first", ttlMs: TTL_MS });
    const abort = new AbortController();
    const waiting = Lease.acquire(leases, "given-up", {
      holder: "second",
      ttlMs: TTL_MS,
      signal: abort.signal,
    });
    abort.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await lease.release();
  });
});

describe("an object bucket", () => {
  test("gives back what was put, over several chunks", async () => {
    const things = await bus.objects("things");
    const content = randomBytes(3_500_000);
    const name = `run/${createHash("sha256").update(content).digest("hex")}`;
    expect(await things.has(name)).toBe(false);
    await things.put(name, content);
    expect(await things.has(name)).toBe(true);
    expect(Buffer.compare(await things.get(name), content)).toBe(0);
    await things.delete(name);
    expect(await things.has(name)).toBe(false);
  });

  test("says which object is not there", async () => {
    const things = await bus.objects("things");
    await expect(things.get("absent")).rejects.toMatchObject({
      code: "MORTISE_TRANSPORT_NOT_FOUND",
      message: expect.stringContaining("things/absent"),
    });
    await things.delete("absent");
  });
});

describe("following a stream", () => {
  const put = (subject: string, number: number) =>
    bus.publish({ subject, schema: NoteSchema, message: { number }, dedupeId: `${subject}/${number}` });

  const follow = (
    filters: string[],
    from: "first" | "new",
    onMessage: (n: number) => void | Promise<void>,
  ) => {
    const faults: unknown[] = [];
    const following = bus.follow({
      stream: "LOG",
      filters,
      from,
      schema: NoteSchema,
      onMessage: (note) => onMessage(note.number),
      onFault: (error) => faults.push(error),
    });
    return { faults, following };
  };

  test("F1: all that is stored comes in order before caughtUp, across several windows, whatever the handler's pace", async () => {
    for (let i = 1; i <= 600; i++) await put("log.many", i);
    const seen: number[] = [];
    const { following } = follow(["log.many"], "first", async (number) => {
      if (number % 100 === 0) await tick();
      seen.push(number);
    });
    const swift: number[] = [];
    const { following: other } = follow(["log.many"], "first", (number) => void swift.push(number));
    await (await other).caughtUp;
    expect(swift).toHaveLength(600);
    await (await other).stop();
    await (await following).caughtUp;
    expect(seen).toEqual(Array.from({ length: 600 }, (_, i) => i + 1));
    await put("log.many", 601);
    await until(() => seen.length === 601);
    await (await following).stop();
  });

  test("from new: nothing stored before, everything after, several filters", async () => {
    await put("log.x.a", 1);
    const seen: number[] = [];
    const { following } = follow(["log.x.*", "log.y.*"], "new", (number) => void seen.push(number));
    await (await following).caughtUp;
    await put("log.x.a", 2);
    await put("log.z.a", 3);
    await put("log.y.a", 4);
    await until(() => seen.length === 2);
    expect(seen).toEqual([2, 4]);
    await (await following).stop();
  });

  test("an empty stream is caught up at once", async () => {
    const { following } = follow(["log.nothing"], "first", () => {});
    await (await following).caughtUp;
    await (await following).stop();
  });

  test("what does not decode is skipped and kept as a dead letter", async () => {
    await bus.publisher.publish({ subject: "log.bad", bytes: Buffer.from([0xff, 0xff]), messageId: "bad" });
    await put("log.bad", 2);
    const seen: number[] = [];
    const { following } = follow(["log.bad"], "first", (number) => void seen.push(number));
    await (await following).caughtUp;
    expect(seen).toEqual([2]);
    await until(async () => (await bus.manager.streams.info("DLQ")).state.messages === 1);
    await (await following).stop();
  });

  test("F2: a handler that throws ends the follower", async () => {
    for (let i = 1; i <= 3; i++) await put("log.fault", i);
    const seen: number[] = [];
    const { faults, following } = follow(["log.fault"], "first", (number) => {
      seen.push(number);
      if (number === 2) throw new Error("cannot");
    });
    await following;
    await until(() => faults.length > 0);
    await tick();
    expect(seen).toEqual([1, 2]);
    expect(faults).toEqual([new Error("cannot")]);
  });

  test("a consumer removed under it is made again and nothing is missed", async () => {
    const seen: number[] = [];
    const { following } = follow(["log.removed"], "new", (number) => void seen.push(number));
    await following;
    await put("log.removed", 1);
    await until(() => seen.length === 1);
    for await (const { name } of bus.manager.consumers.list("LOG"))
      await bus.manager.consumers.delete("LOG", name);
    await put("log.removed", 2);
    await until(() => seen.length === 2);
    expect(seen).toEqual([1, 2]);
    await (await following).stop();
  });
});

function tick(): Promise<string> {
  return new Promise((resolve) => setTimeout(() => resolve("tick"), 50));
}
