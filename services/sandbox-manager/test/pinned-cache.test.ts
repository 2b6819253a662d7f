/** What is shared stays while it is used, and goes by age and bytes when it is not. */
import { ManualClock } from "@mortise/kernel";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { type CacheLease, PinnedCache } from "../src/shelf/pinned-cache.js";

interface Value {
  readonly name: string;
  readonly bytes: number;
  release(): Promise<void>;
}

let clock: ManualClock;
let released: string[];
let faults: unknown[];
let cache: PinnedCache<Value>;

const value = (name: string, bytes: number): Value => ({
  name,
  bytes,
  release: async () => void released.push(name),
});
const take = (name: string, bytes = 1) => cache.lease(name, async () => value(name, bytes));

beforeEach(() => {
  clock = new ManualClock();
  released = [];
  faults = [];
  cache = new PinnedCache<Value>({ maxBytes: 10, maxAgeMs: 1000 }, clock, (error) => faults.push(error));
});

describe("PinnedCache", () => {
  test("makes a value once for all who ask at the same time", async () => {
    let made = 0;
    const ask = () =>
      cache.lease("a", async () => {
        made++;
        return value("a", 1);
      });
    const leases = await Promise.all([ask(), ask(), ask()]);
    expect(made).toBe(1);
    expect(new Set(leases.map((lease) => lease.value)).size).toBe(1);
  });

  test("does not keep a failure", async () => {
    await expect(cache.lease("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect((await take("a")).value.name).toBe("a");
    expect(cache.size).toBe(1);
  });

  test("gives back the longest unused when the bytes are too many", async () => {
    for (const name of ["a", "b", "c"]) {
      (await take(name, 4)).release();
      clock.advance(1);
    }
    expect(released).toEqual(["a"]);
    (await take("b", 4)).release();
    clock.advance(1);
    (await take("d", 4)).release();
    expect(released).toEqual(["a", "c"]);
  });

  test("gives back what is too old, and says when that fails", async () => {
    const lease = await cache.lease("a", async () => ({
      ...value("a", 1),
      release: () => Promise.reject(new Error("busy")),
    }));
    lease.release();
    clock.advance(1001);
    cache.evict();
    await Promise.resolve();
    expect(cache.size).toBe(0);
    expect(faults).toMatchObject([{ message: "busy" }]);
  });

  test("closing gives everything back, also what is still being made", async () => {
    (await take("a")).release();
    const pending = take("b");
    await cache.close();
    expect(released.toSorted()).toEqual(["a", "b"]);
    await pending;
  });

  test("never gives back what is leased, and never keeps more idle bytes than it may", async () => {
    const act = fc.record({
      name: fc.constantFrom("a", "b", "c", "d", "e"),
      verb: fc.constantFrom("lease", "release", "wait"),
    });
    const bytes: Record<string, number> = { a: 1, b: 3, c: 5, d: 7, e: 11 };
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 40 }), async (acts) => {
        clock = new ManualClock();
        released = [];
        cache = new PinnedCache<Value>({ maxBytes: 10, maxAgeMs: 50 }, clock, (error) => faults.push(error));
        const held: CacheLease<Value>[] = [];
        for (const { name, verb } of acts) {
          if (verb === "lease") held.push(await take(name, bytes[name]));
          else if (verb === "release") held.shift()?.release();
          else clock.advance(20);
          for (const lease of held) {
            const again = await cache.lease(lease.value.name, () => Promise.reject(new Error("it was gone")));
            expect(again.value).toBe(lease.value);
            again.release();
          }
          const inUse = new Set(held.map((lease) => lease.value));
          const used = [...inUse].reduce((sum, each) => sum + each.bytes, 0);
          expect(cache.bytes).toBeLessThanOrEqual(Math.max(10, used));
        }
        expect(faults).toEqual([]);
      }),
    );
  });
});
