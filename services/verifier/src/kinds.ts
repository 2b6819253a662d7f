/** Owns which kind of verification a task needs, and the door to each: its plan and its judgement. */
import { MortiseError } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import { CHANGE } from "./diff-change.js";
import { judgeLogRun } from "./log/log.js";
import { type LogTask, planLog, planLogCounter } from "./log/plan-log.js";
import { judgeResultsRun, planResults, type ResultsTask } from "./results/results.js";
import { judgeRewardRun, planReward } from "./reward/reward.js";
import { type Judged, unresolved } from "./run/judged.js";
import type { CounterPlan, Plan, PlanWish } from "./run/plan.js";
import type { RunRecord, TestKind } from "./run/run-record.js";

/** By tests/expected.json; a task without one writes a reward, as Harbor has it. */
export function kindOf({ tests: { expected } }: Task): TestKind {
  if (expected === undefined) return "reward";
  return expected.format === "log" ? "log" : "results";
}

/** What is to be run to grade a trial. Throws MORTISE_TASK_RECORD for a record that cannot be graded. */
export function planFor(task: Task, wish: PlanWish): Plan {
  const plans = { results: planResults, log: planLog, reward: planReward };
  return plans[kindOf(task)](task, wish);
}

/** What is to be run besides, of a run that would be resolved; undefined where there is nothing. */
export function counterFor(
  task: Task,
  wish: Pick<PlanWish, "timeoutMs">,
  run: RunRecord,
): CounterPlan | undefined {
  return kindOf(task) === "log" ? planLogCounter(task, wish, run) : undefined;
}

/**
 * Judges a record, the one of a run or one that was kept.
 * @throws MORTISE_VERIFIER_RESULTS when it is of another kind than the task's tests
 */
export function judgeRun(task: Task, run: RunRecord): Judged {
  const kind = kindOf(task);
  if (kind !== run.kind)
    throw new MortiseError({
      code: "MORTISE_VERIFIER_RESULTS",
      message: `the record of ${run.task.id} is of kind ${run.kind}, its tests are of kind ${kind}`,
    });
  const change = run.diffs.find(({ name, failure }) => name === CHANGE && failure !== "");
  if (change !== undefined)
    return unresolved(`the change does not apply: ${change.failure.replace(/\s*\n\s*/g, "; ")}`, {
      grader: "none",
    });
  if (kind === "log") return judgeLogRun(task as LogTask, run);
  return kind === "results" ? judgeResultsRun(task as ResultsTask, run) : judgeRewardRun(task, run);
}
