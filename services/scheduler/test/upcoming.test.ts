import { RunPhase } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { initialRunState, type RunState } from "../src/run/state.js";
import { upcomingTasks } from "../src/run/upcoming.js";
import { evaluationPlan, TaskOrder } from "../src/task-order.js";
import type { Trial } from "../src/trial/trial.js";

const named = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `${prefix}-${n}`, digest: "d" }));
const order = new TaskOrder(named("train", 5), 7);
const plan = {
  order,
  attempts: evaluationPlan(named("held", 2), 4),
  evaluateBefore: true,
  evaluateAfter: true,
  steps: 3,
  groupsPerStep: 2,
};
const draws = Array.from({ length: 12 }, (_, n) => order.at(n).task.id);
const ids = (changes: Partial<RunState>, count = 100) =>
  upcomingTasks({ ...initialRunState, ...changes }, plan, count).map(({ id }) => id);
const waiting = (task: string) => ({ id: `trial of ${task}`, task: { id: task, digest: "d" } }) as Trial;

describe("what will be launched next", () => {
  test("during the warm start: the first evaluation, then the first draws, each task once", () => {
    expect(ids({ phase: RunPhase.WARM_START })).toEqual(["held-0", "held-1", ...new Set(draws.slice(0, 6))]);
    expect(ids({ phase: RunPhase.WARM_START }, 3)).toEqual(["held-0", "held-1", draws[0]]);
  });

  test("during training: what waits for room, then the draws that are left, then the last evaluation", () => {
    const trials = new Map([waiting("train-9"), waiting("train-8")].map((trial) => [trial.id, trial]));
    const state = {
      phase: RunPhase.TRAIN,
      version: 1,
      trials,
      queue: ["trial of train-8", "trial of train-9", "closed"],
      admission: { ...initialRunState.admission, started: 3 },
    };
    expect(ids(state)).toEqual(["train-8", "train-9", ...new Set(draws.slice(3, 7)), "held-0", "held-1"]);
  });

  test("nothing when the run is over, is drained, or wants nothing", () => {
    expect(ids({ phase: RunPhase.FINISHED })).toEqual([]);
    expect(ids({ phase: RunPhase.TRAIN, isDraining: true })).toEqual([]);
    expect(ids({ phase: RunPhase.TRAIN }, 0)).toEqual([]);
  });
});
