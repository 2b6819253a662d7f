/**
 * Owns the answer to GetRunStatus, computed from the run's state when asked. Feeds views; nothing is decided by it.
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GetRunStatusResponseSchema } from "@mortise/contracts";
import { type Group, isSettled } from "./group/group.js";
import { evaluationOf } from "./run/phases.js";
import type { RunPlan } from "./run/plan.js";
import type { RunState } from "./run/state.js";
import type { TrialStage } from "./trial/trial.js";

export function runStatus(
  state: RunState,
  plan: RunPlan,
): MessageInitShape<typeof GetRunStatusResponseSchema> {
  const stages = countStages(state);
  const { tally } = state;
  const evaluation = evaluationOf(state.phase, plan);
  const group = evaluation === undefined ? undefined : state.groups.get(evaluation);
  return {
    run: plan.run,
    phase: state.phase,
    version: BigInt(Math.max(0, state.version)),
    stepForming: BigInt(Math.min(plan.steps, Math.max(0, state.version) + 1)),
    trialsClosed: closedOfFormingStep(state, plan),
    trialsNeeded: plan.groupsPerStep * plan.groupSize,
    setupFailures: tally.setupFailures,
    queued: stages("queued", "opening", "launched"),
    warm: stages("warm"),
    running: stages("running"),
    verifying: stages("sealing", "verifying"),
    ...(tally.rewardCount === 0 ? {} : { meanReward: tally.rewardSum / tally.rewardCount }),
    trialsEnded: BigInt(tally.trialsEnded),
    ...(tally.ledger === undefined ? {} : { ledger: tally.ledger }),
    draining: state.isDraining,
    evaluationDone: group === undefined ? 0 : settledPlaces(group, plan),
    evaluationTotal: group === undefined ? 0 : plan.attempts.length,
  };
}

/**
 * Places settled of the groups the next step will take, at most what it needs. Dropped groups fill a batch
 * unless they are refilled.
 */
function closedOfFormingStep(state: RunState, plan: RunPlan): number {
  const { decided, dropped } = state.admission;
  const usable = plan.refillDropped ? decided - dropped : decided;
  const consumed = Math.max(0, state.version) * plan.groupsPerStep;
  const forming = [...state.groups.values()].filter(({ isEvaluation }) => !isEvaluation);
  const open = forming.reduce((sum, group) => sum + settledPlaces(group, plan), 0);
  const closed = Math.max(0, usable - consumed) * plan.groupSize + open;
  return Math.min(closed, plan.groupsPerStep * plan.groupSize);
}

function settledPlaces(group: Group, plan: RunPlan): number {
  return group.places.filter((place) => isSettled(place, group.isEvaluation, plan.maxRetries)).length;
}

function countStages(state: RunState): (...stages: TrialStage[]) => number {
  const counts = new Map<TrialStage, number>();
  for (const { stage } of state.trials.values()) counts.set(stage, (counts.get(stage) ?? 0) + 1);
  return (...stages) => stages.reduce((sum, stage) => sum + (counts.get(stage) ?? 0), 0);
}
