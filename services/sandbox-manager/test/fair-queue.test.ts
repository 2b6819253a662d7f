/** Who is next at the start gate: equal shares for runs and groups, order within a group, nothing lost. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairQueue, type FlowKey } from "../src/fair-queue.js";
import { StartGate } from "../src/start-gate.js";

const name = fc.constantFrom("a", "b", "c");
const entry = fc.record({ run: name, group: name, cost: fc.integer({ min: 1, max: 5 }) });

describe("FairQueue", () => {
  test("gives everything back once, in order of arrival within a group", () => {
    const step = fc.oneof(entry, fc.constant("shift" as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const queue = new FairQueue<{ n: number; key: FlowKey }>();
        const taken: { n: number; key: FlowKey }[] = [];
        let pushed = 0;
        for (const each of steps) {
          if (each === "shift") {
            const value = queue.shift();
            expect(value === undefined).toBe(taken.length === pushed);
            if (value !== undefined) taken.push(value);
          } else queue.push(each, { n: pushed++, key: { run: each.run, group: each.group } }, each.cost);
        }
        for (let value = queue.shift(); value !== undefined; value = queue.shift()) taken.push(value);
        expect(queue.size).toBe(0);
        expect(taken.map(({ n }) => n).sort((a, b) => a - b)).toEqual([...Array(pushed).keys()]);
        for (const run of ["a", "b", "c"])
          for (const group of ["a", "b", "c"]) {
            const own = taken.filter(({ key }) => key.run === run && key.group === group).map(({ n }) => n);
            expect(own).toEqual(own.toSorted((a, b) => a - b));
          }
      }),
    );
  });

  test("serves flows that always wait equally, to within one largest cost", () => {
    const costs = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 40, maxLength: 40 });
    fc.assert(
      fc.property(fc.array(costs, { minLength: 2, maxLength: 4 }), fc.boolean(), (flows, areRuns) => {
        const queue = new FairQueue<[flow: number, cost: number]>();
        flows.forEach((each, flow) => {
          const key = areRuns ? { run: `r${flow}`, group: "g" } : { run: "r", group: `g${flow}` };
          for (const cost of each) queue.push(key, [flow, cost], cost);
        });
        const served = flows.map(() => 0);
        // Forty entries of at least 1 and at most 5: while this many are taken, no flow has run dry.
        for (let taken = 0; taken < 20; taken++) {
          const [flow, cost] = queue.shift()!;
          served[flow]! += cost;
          expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(5);
        }
      }),
    );
  });

  test("a run with one trial does not wait behind a run with a thousand", () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 1000; n++) queue.push({ run: "large", group: `g${n % 8}` }, "large");
    queue.shift();
    queue.push({ run: "small", group: "g" }, "small");
    expect([queue.shift(), queue.shift()]).toContain("small");
  });

  test("who comes back one at a time gets no more than who waits", () => {
    const queue = new FairQueue<string>();
    for (let n = 0; n < 50; n++) queue.push({ run: "waits" }, "waits");
    const served: string[] = [];
    queue.push({ run: "returns" }, "returns");
    for (let n = 0; n < 40; n++) {
      const value = queue.shift()!;
      served.push(value);
      if (value === "returns") queue.push({ run: "returns" }, "returns");
    }
    expect(served.filter((value) => value === "waits").length).toBeGreaterThanOrEqual(19);
  });

  test("what is taken back is not served and holds nobody up", () => {
    const queue = new FairQueue<string>();
    const withdraw = queue.push({ run: "a" }, "gone");
    queue.push({ run: "a" }, "stays");
    expect(withdraw()).toBe(true);
    expect(withdraw()).toBe(false);
    expect([queue.size, queue.shift(), queue.shift()]).toEqual([1, "stays", undefined]);
  });
});

describe("StartGate", () => {
  test("lets through as many as it may and hands a place on when one ends, whatever the end", async () => {
    const gate = new StartGate(2);
    const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
    const begun: number[] = [];
    const passed = ends.map((end, n) =>
      gate.pass({ run: "r" }, () => {
        begun.push(n);
        return end.promise;
      }),
    );
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    ends[0]!.reject(new Error("start failed"));
    await expect(passed[0]).rejects.toThrow("start failed");
    await Promise.resolve();
    expect(begun).toEqual([0, 1, 2]);
    expect([gate.starting, gate.waiting]).toEqual([2, 1]);
    for (const end of ends) end.resolve();
    await Promise.all(passed.slice(1));
    expect([gate.starting, gate.waiting]).toEqual([0, 0]);
  });

  test("who stops waiting is not started and takes no place", async () => {
    const gate = new StartGate(1);
    const first = Promise.withResolvers<void>();
    const running = gate.pass({ run: "r" }, () => first.promise);
    const patience = new AbortController();
    const impatient = gate.pass({ run: "r" }, async () => "started", { signal: patience.signal });
    const after = gate.pass({ run: "r" }, async () => "started");
    patience.abort(new Error("too late"));
    await expect(impatient).rejects.toThrow("too late");
    first.resolve();
    await running;
    expect(await after).toBe("started");
    expect(gate.starting).toBe(0);
  });
});
