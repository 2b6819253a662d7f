import { create } from "@bufbuild/protobuf";
import {
  ExclusionReason,
  GroupDisposition,
  MemberDisposition,
  Outcome,
  SessionSealedSchema,
  TerminationReason,
} from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide } from "../src/group/disposition.js";
import { type Group, isSettled } from "../src/group/group.js";
import { afterStep, groupsToStart } from "../src/run/admission.js";
import { evaluationPlan, TaskOrder } from "../src/task-order.js";
import { TERMINATION_POLICY } from "../src/termination-policy.js";
import { closingOf, standingOf, terminationWithSeal } from "../src/trial/standing.js";
import type { ClosedTrial } from "../src/trial/trial.js";
import { tasks } from "./simulated-world.js";

const { COMPLETED, AGENT_CRASH, SETUP_FAILED, VERIFIER_FAILURE, TAMPER } = TerminationReason;

describe("the draw of tasks", () => {
  it("is a permutation of the index in every epoch, other in each, whatever the order of the index", () => {
    const index = tasks("train", 7);
    const order = new TaskOrder(index, 3);
    const epoch = (n: number, o: TaskOrder) => Array.from({ length: 7 }, (_, i) => o.at(n * 7 + i).task.id);
    expect(epoch(0, order).sort()).toEqual(index.map(({ id }) => id));
    expect(epoch(0, order)).not.toEqual(epoch(1, order));
    expect(order.at(7).epoch).toBe(1);
    expect(epoch(1, new TaskOrder([...index].reverse(), 3))).toEqual(epoch(1, order));
    expect(epoch(0, new TaskOrder(index, 4))).not.toEqual(epoch(0, order));
  });

  it("spreads exactly the attempts asked for, evenly", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 200 }), (nTasks, attempts) => {
        const plan = evaluationPlan(tasks("h", nTasks), attempts);
        expect(plan).toHaveLength(attempts);
        const counts = Array.from({ length: nTasks }, (_, i) => plan.filter((p) => p.taskIndex === i).length);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        const names = new Set(plan.map(({ taskIndex, attempt }) => `${taskIndex}-${attempt}`));
        expect(names.size).toBe(attempts);
      }),
    );
  });
});

describe("admission", () => {
  const plan = { maxStaleness: 1, groupsPerStep: 8, steps: 10, refillDropped: false };
  const counters = { started: 0, decided: 0, dropped: 0, refused: 0 };

  it("opens η + 1 batches at version 0 and one more with each version, up to what the steps need", () => {
    expect(groupsToStart(counters, -1, plan)).toBe(0);
    expect(groupsToStart(counters, 0, plan)).toBe(16);
    expect(groupsToStart({ ...counters, started: 16 }, 0, plan)).toBe(0);
    expect(groupsToStart({ ...counters, started: 16 }, 1, plan)).toBe(8);
    expect(groupsToStart({ ...counters, started: 80 }, 9, plan)).toBe(0);
  });

  it("replaces dropped and refused groups only when they are refilled", () => {
    const lost = { started: 16, decided: 16, dropped: 3, refused: 1 };
    expect(groupsToStart(lost, 0, plan)).toBe(0);
    expect(groupsToStart(lost, 0, { ...plan, refillDropped: true })).toBe(4);
  });

  it("takes consumed groups out, and counts as refused what no step can take any more", () => {
    const admitted = new Map([
      ["g0", 0],
      ["g1", 0],
      ["g2", 2],
      ["g3", undefined],
    ]);
    const step = { version: 2, groups: ["g0"], staleGroups: ["g2"] };
    const after = afterStep(admitted, step, 1);
    expect([...after.admitted.keys()]).toEqual(["g3"]);
    expect(after.refused).toBe(2);
  });
});

describe("what a trial counts as", () => {
  it("has a rule for every termination reason", () => {
    const reasons = Object.values(TerminationReason).filter((value) => typeof value === "number");
    for (const reason of reasons) expect(TERMINATION_POLICY[reason as TerminationReason]).toBeDefined();
    const verified = reasons.filter((reason) => TERMINATION_POLICY[reason as TerminationReason].isVerified);
    expect(verified.map((reason) => TerminationReason[reason as TerminationReason])).toEqual([
      "COMPLETED",
      "TURN_LIMIT",
      "TOKEN_LIMIT",
      "AGENT_TIMEOUT",
      "AGENT_CRASH",
      "RESOURCE_LIMIT",
    ]);
  });

  it("never takes a missing reward for 0 (C10)", () => {
    expect(standingOf(COMPLETED, Outcome.UNRESOLVED, 0)).toBe("valid");
    expect(standingOf(COMPLETED, Outcome.UNRESOLVED)).toBe("infra");
    expect(standingOf(COMPLETED, Outcome.RESOLVED, Number.NaN)).toBe("infra");
    const closing = closingOf(COMPLETED, { outcome: Outcome.RESOLVED, conclusive: false }, "exclude");
    expect(closing).toEqual({ termination: VERIFIER_FAILURE, outcome: Outcome.INVALID_INFRA });
  });

  it("penalises tampering only when asked to and only when it is conclusive", () => {
    const verdict = { outcome: Outcome.INVALID_TAMPER, conclusive: true };
    const excluded = { termination: TAMPER, outcome: Outcome.INVALID_TAMPER };
    expect(closingOf(COMPLETED, verdict, "exclude")).toEqual(excluded);
    expect(closingOf(COMPLETED, { ...verdict, conclusive: false }, "penalise")).toEqual(excluded);
    const penalised = closingOf(COMPLETED, verdict, "penalise");
    expect(penalised.reward).toBe(0);
    expect(standingOf(penalised.termination, penalised.outcome, penalised.reward)).toBe("valid");
    expect(standingOf(excluded.termination, excluded.outcome)).toBe("tamper");
  });

  it("believes the session about why a trial ended, except where the sandbox failed", () => {
    const seal = (over: object) => create(SessionSealedSchema, over);
    expect(terminationWithSeal(AGENT_CRASH, seal({ budgetReached: "turns" }))).toBe(
      TerminationReason.TURN_LIMIT,
    );
    expect(terminationWithSeal(COMPLETED, seal({ budgetReached: "response_tokens" }))).toBe(
      TerminationReason.TOKEN_LIMIT,
    );
    expect(terminationWithSeal(COMPLETED, seal({ budgetReached: "wall_clock" }))).toBe(
      TerminationReason.AGENT_TIMEOUT,
    );
    expect(terminationWithSeal(COMPLETED, seal({ budgetReached: "turns_without_call" }))).toBe(
      TerminationReason.TURN_LIMIT,
    );
    expect(terminationWithSeal(AGENT_CRASH, seal({ failure: "MORTISE_PROVIDER_ENGINE" }))).toBe(
      TerminationReason.ENGINE_FAILURE,
    );
    expect(terminationWithSeal(SETUP_FAILED, seal({ budgetReached: "turns" }))).toBe(SETUP_FAILED);
  });
});

describe("the disposition of a group", () => {
  const trial = (over: Partial<ClosedTrial>): ClosedTrial => ({
    id: "t",
    retry: 0,
    standing: "valid",
    termination: COMPLETED,
    outcome: Outcome.RESOLVED,
    sampledTokens: 3n,
    turnSequences: [1n],
    sealSequence: 2n,
    ...over,
  });
  const group = (...trials: Partial<ClosedTrial>[]): Group => ({
    id: "g0",
    isEvaluation: false,
    ordinal: 0,
    epoch: 0,
    places: trials.map((over, i) => ({
      task: tasks("train", 1)[0]!,
      firstTrial: `g0-${i}`,
      history: [trial({ id: `g0-${i}`, ...over })],
    })),
  });
  const now = { run: "r", version: 5, consumer: 5, maxStaleness: 1, hasEnded: false };
  const infra = { standing: "infra", termination: SETUP_FAILED } as const;

  it("admits valid members that differ; infrastructure failures have no vote", () => {
    const { record, isAdmitted } = decide(group({ reward: 1 }, { reward: 0 }, infra), now);
    expect(isAdmitted).toBe(true);
    expect(record.members!.map(({ disposition }) => disposition)).toEqual([
      MemberDisposition.TRAIN,
      MemberDisposition.TRAIN,
      MemberDisposition.EXCLUDED,
    ]);
    expect(record.members![2]!.exclusion).toBe(ExclusionReason.INFRA);
  });

  it.each([
    ["equal rewards", [{ reward: 0.1 + 0.2 }, { reward: 0.3 }], ExclusionReason.ZERO_VARIANCE],
    ["one valid member", [{ reward: 1 }, infra], ExclusionReason.TOO_FEW_VALID],
    [
      "members past the bound",
      [
        { reward: 1, lowestVersion: 3n },
        { reward: 0, lowestVersion: 4n },
      ],
      ExclusionReason.STALE,
    ],
  ] as const)("drops a group whole for %s", (_, trials, reason) => {
    const { record, isAdmitted } = decide(group(...trials), now);
    expect(isAdmitted).toBe(false);
    expect(record.disposition).toBe(GroupDisposition.DROPPED);
    expect(record.dropReason).toBe(reason);
    for (const { disposition } of record.members!) expect(disposition).toBe(MemberDisposition.EXCLUDED);
  });

  it("drops everything that is undecided when the run has ended", () => {
    const { record } = decide(group({ reward: 1 }, { reward: 0 }), { ...now, hasEnded: true });
    expect(record.dropReason).toBe(ExclusionReason.RUN_ENDED);
  });

  it("settles a place by a result, or by one failure more than there are retries", () => {
    const place = (...history: Partial<ClosedTrial>[]) => ({
      task: tasks("train", 1)[0]!,
      firstTrial: "g0-0",
      history: history.map(trial),
    });
    expect(isSettled(place(), false, 2)).toBe(false);
    expect(isSettled(place({ reward: 1 }), false, 2)).toBe(true);
    expect(isSettled(place(infra, infra), false, 2)).toBe(false);
    expect(isSettled(place(infra, infra, infra), false, 2)).toBe(true);
    expect(isSettled(place({ standing: "cancelled" }), false, 2)).toBe(false);
    expect(isSettled(place({ standing: "stale" }), false, 2)).toBe(true);
    expect(isSettled(place({ standing: "stale" }), true, 2)).toBe(false);
  });
});
