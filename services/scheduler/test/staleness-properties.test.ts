/**
 * The staleness bound is the scheduler's to keep: whatever the order of events, the lag of engines and the moments the
 * scheduler is killed at, no step finds a trained member past the bound, and with `stragglers = "wait"` no work is
 * thrown away for its age.
 */
import { ExclusionReason, type GroupRecord } from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SimulatedWorld, type WorldOptions } from "./simulated-world.js";

const seed = fc.integer({ min: 0, max: 2 ** 31 });
/** Turns at which the scheduler is killed: between any two of store, publish, answer and step. */
const kills = fc.uniqueArray(fc.nat(600), { maxLength: 5 });
const plans = fc.record({
  maxStaleness: fc.constantFrom(0, 1, 2),
  refillDropped: fc.boolean(),
  slots: fc.constantFrom(1, 3, 8),
});

interface Choice {
  readonly maxStaleness: number;
  readonly refillDropped: boolean;
  readonly slots: number;
}

function finished(
  { maxStaleness, refillDropped, slots }: Choice,
  options: WorldOptions,
  stragglers: "wait" | "drop" = "wait",
): SimulatedWorld {
  const config = {
    rollout: { groupSize: 3, slots, warm: 2, maxRetries: 2 },
    trainer: { steps: 4, groupsPerStep: 2, refillDropped },
    evaluation: { attempts: 0 },
    async: { maxStaleness, stragglers },
  };
  const world = new SimulatedWorld({ ...options, config });
  world.finish();
  return world;
}

const excludedForAge = (groups: readonly GroupRecord[]) =>
  groups.flatMap(({ members }) =>
    members.flatMap(({ trial, exclusion }) => (exclusion === ExclusionReason.STALE ? [trial] : [])),
  );

describe("the age of what a step takes", { timeout: 300_000 }, () => {
  it("is never past the bound, and nothing is thrown away for it, wherever the scheduler is killed", () => {
    fc.assert(
      fc.property(seed, plans, kills, (s, plan, crashesAt) => {
        const world = finished(plan, { seed: s, crashesAt, enginesLag: true, duplicateRate: 0.1 });
        expect(world.overdue).toEqual([]);
        expect(excludedForAge(world.groups)).toEqual([]);
      }),
      { numRuns: 400 },
    );
  });

  it("is never past the bound when trials fail, are late and are retried besides", () => {
    fc.assert(
      fc.property(seed, plans, kills, (s, plan, crashesAt) => {
        const unruly = { failureRate: 0.1, deadlineRate: 0.05, duplicateRate: 0.1, enginesLag: true };
        const world = finished(plan, { seed: s, crashesAt, ...unruly });
        expect(world.overdue).toEqual([]);
        expect(excludedForAge(world.groups)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it("is never past the bound after a kill at each turn of a run, one after the other", () => {
    const plan = { maxStaleness: 1, refillDropped: false, slots: 3 };
    for (let turn = 0; turn < 700; turn++) {
      const world = finished(plan, { seed: 7, crashesAt: [turn], enginesLag: true });
      expect(world.overdue).toEqual([]);
      expect(excludedForAge(world.groups)).toEqual([]);
    }
  });

  it("is never past the bound either when stragglers are dropped; then they are what is thrown away", () => {
    let nExcluded = 0;
    fc.assert(
      fc.property(seed, plans, kills, (s, plan, crashesAt) => {
        const world = finished(plan, { seed: s, crashesAt, enginesLag: true }, "drop");
        expect(world.overdue).toEqual([]);
        nExcluded += excludedForAge(world.groups).length;
      }),
      { numRuns: 200 },
    );
    expect(nExcluded).toBeGreaterThan(0);
  });
});
