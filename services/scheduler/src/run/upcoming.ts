/**
 * Owns which tasks will be launched next, as far as it is known: first those that wait for room, then the next draws of
 * the order or the attempts of the evaluation to come. Pure; a guess that is wrong costs nothing but time.
 */
import { RunPhase } from "@mortise/contracts";
import type { TaskName } from "../trial/trial.js";
import type { RunPlan } from "./plan.js";
import type { RunState } from "./state.js";

export type UpcomingPlan = Pick<
  RunPlan,
  "order" | "attempts" | "evaluateBefore" | "evaluateAfter" | "steps" | "groupsPerStep"
>;

/** At most `count` tasks, each once, in the order they will be needed. */
export function upcomingTasks(state: RunState, plan: UpcomingPlan, count: number): TaskName[] {
  const found = new Map<string, TaskName>();
  for (const task of inOrder(state, plan)) {
    if (found.size >= count) break;
    found.set(task.id, task);
  }
  return [...found.values()];
}

function* inOrder(state: RunState, plan: UpcomingPlan): Generator<TaskName> {
  if (state.isDraining || state.phase === RunPhase.FINISHED) return;
  for (const id of state.queue) {
    const trial = state.trials.get(id);
    if (trial !== undefined) yield trial.task;
  }
  const evaluation = plan.attempts.map(({ task }) => task);
  const isBefore = state.phase < RunPhase.EVALUATE_BEFORE;
  if (isBefore && plan.evaluateBefore) yield* evaluation;
  if (state.phase <= RunPhase.TRAIN) yield* draws(state, plan);
  if (state.phase === RunPhase.TRAIN && plan.evaluateAfter) yield* evaluation;
}

/** Groups that no step can want are not drawn. */
function* draws({ admission, version }: RunState, plan: UpcomingPlan): Generator<TaskName> {
  const left = (plan.steps - Math.max(0, version)) * plan.groupsPerStep;
  for (let n = 0; n < left; n++) yield plan.order.at(admission.started + n).task;
}
