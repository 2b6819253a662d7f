import { GroupDisposition, MemberDisposition, RunPhase, TrialState } from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { occupancy } from "../src/run/slots.js";
import { closedCount, SimulatedWorld, type WorldOptions } from "./simulated-world.js";

const seed = fc.integer({ min: 0, max: 2 ** 31 });

/** Runs to the end and returns the world; invariants of every moment are checked on the way. */
function run(options: WorldOptions): SimulatedWorld {
  const world = new SimulatedWorld(options);
  const { plan } = world;
  world.check = () => {
    if (!world.state.isLive) return; // replaying: a crash may have lost that a slot was given back
    const { inSandbox, running, unverified } = occupancy(world.state.trials.values());
    // Checked thousands of times a run: an assertion library here would take most of the time.
    if (running > plan.slots) throw new Error(`${running} agents in ${plan.slots} slots`);
    if (inSandbox > plan.slots + plan.warm) throw new Error(`${inSandbox} trials in sandboxes`);
    if (unverified > 3 * plan.slots + plan.warm) throw new Error(`${unverified} trials without a verdict`);
    const bound = Math.max(0, (world.version + 1 + plan.maxStaleness) * plan.groupsPerStep);
    const { started } = world.state.admission;
    if (!plan.refillDropped && started > bound) throw new Error(`${started} groups started, ${bound} may be`);
  };
  world.finish();
  return world;
}

function expectClosedBooks(world: SimulatedWorld): void {
  const { plan, stored, groups } = world;
  const launched = new Map(
    stored
      .filter(({ state }) => state === TrialState.LAUNCHED)
      .map((transition) => [transition.trial, transition]),
  );
  const closed = closedCount(stored);
  // Every launched trial closed exactly once.
  expect([...closed.keys()].sort()).toEqual([...launched.keys()].sort());
  expect(Math.max(...closed.values())).toBe(1);
  // Every trial that ran for a group is a member of exactly that group's one record (C5).
  const members = groups.flatMap(({ group, members }) => members.map(({ trial }) => `${group}/${trial}`));
  const training = [...launched.values()].filter(({ evaluation }) => !evaluation);
  expect(members.sort()).toEqual(training.map(({ group, trial }) => `${group}/${trial}`).sort());
  expect(new Set(groups.map(({ group }) => group)).size).toBe(groups.length);
  // A place never has more than 1 + maxRetries failures.
  for (const { members } of groups) {
    for (const { retry } of members) expect(retry).toBeLessThanOrEqual(plan.maxRetries);
  }
  // Evaluations account for each attempt.
  for (const record of world.evaluations.values()) {
    expect((record.attempts ?? 0) + (record.invalid ?? 0)).toBe(plan.attempts.length);
    expect(record.expected).toBe(plan.attempts.length);
    const { lostInfrastructure = 0, lostTask = 0, lostTamper = 0, retries = 0 } = record;
    expect(lostInfrastructure + lostTask + lostTamper).toBe(record.invalid);
    expect(record.solved ?? 0).toBeLessThanOrEqual(record.attempts ?? 0);
    const ofEvaluation = [...launched.values()].filter(({ group }) => group === record.name);
    expect(ofEvaluation.length - plan.attempts.length).toBe(retries);
  }
  expect([...world.evaluations.keys()].sort()).toEqual(["after", "before"]);
  expect(world.phases).toEqual([
    RunPhase.WARM_START,
    RunPhase.EVALUATE_BEFORE,
    RunPhase.TRAIN,
    RunPhase.EVALUATE_AFTER,
    RunPhase.FINISHED,
  ]);
}

describe("a run under any order of events", { timeout: 120_000 }, () => {
  it("takes every slot it may, and no more", () => {
    fc.assert(
      fc.property(seed, (s) => {
        expect(run({ seed: s }).maxRunning).toBeLessThanOrEqual(3);
      }),
      { numRuns: 20 },
    );
    expect(run({ seed: 1 }).maxRunning).toBe(3);
  });

  it("decides exactly the groups its steps need, with closed books", () => {
    fc.assert(
      fc.property(seed, (s) => {
        const world = run({ seed: s, failureRate: 0.15, duplicateRate: 0.2 });
        expect(world.groups).toHaveLength(world.plan.steps * world.plan.groupsPerStep);
        expectClosedBooks(world);
      }),
      { numRuns: 250 },
    );
  });

  it("resolves trials whose deadlines strike, whenever they strike", () => {
    fc.assert(
      fc.property(seed, (s) => {
        const world = run({ seed: s, deadlineRate: 0.1, duplicateRate: 0.1 });
        expectClosedBooks(world);
      }),
      { numRuns: 25 },
    );
  });

  it("goes on after crashes: same groups, nothing twice, nothing lost", () => {
    fc.assert(
      fc.property(seed, (s) => {
        const world = run({ seed: s, failureRate: 0.1, duplicateRate: 0.1, crashRate: 0.01 });
        expect(world.groups).toHaveLength(world.plan.steps * world.plan.groupsPerStep);
        expectClosedBooks(world);
        for (const { ordinal, group, task } of world.groups) {
          expect(group).toBe(`g${ordinal}`);
          expect(task?.id).toBe(world.plan.order.at(Number(ordinal)).task.id);
        }
      }),
      { numRuns: 250 },
    );
  });

  it("replaces dropped groups until every batch is full", () => {
    const config = { trainer: { steps: 3, groupsPerStep: 2, refillDropped: true } };
    fc.assert(
      fc.property(seed, (s) => {
        const world = run({ seed: s, failureRate: 0.05, crashRate: 0.005, config });
        expect(world.version).toBe(3);
        const admitted = world.groups.filter(({ disposition }) => disposition === GroupDisposition.ADMITTED);
        expect(admitted.length).toBeGreaterThanOrEqual(6);
        expectClosedBooks(world);
      }),
      { numRuns: 25 },
    );
  });

  it("never trains a member older than the bound when its group is decided", () => {
    fc.assert(
      fc.property(seed, (s) => {
        const world = run({ seed: s, failureRate: 0.1, crashRate: 0.005 });
        for (const { decidedVersion, members } of world.groups) {
          for (const { disposition, lowestVersion } of members) {
            if (disposition !== MemberDisposition.TRAIN || lowestVersion === undefined) continue;
            expect(Number(decidedVersion - lowestVersion)).toBeLessThanOrEqual(world.plan.maxStaleness);
          }
        }
      }),
      { numRuns: 20 },
    );
  });
});
