/** Owns the message form of a transition. Does not publish it. */
import { Outcome } from "@mortise/contracts";
import type { Effect } from "../run/effects.js";
import type { TransitionInit } from "./journal.js";

type RecordEffect = Extract<Effect, { kind: "record" }>;

/** The transition of a "record" effect; the journal adds run and fence. */
export function transitionOf(effect: RecordEffect, atMs: number): TransitionInit {
  const { trial, state, closing } = effect;
  return {
    trial: trial.id,
    group: trial.group,
    slotInGroup: trial.place,
    retry: trial.retry,
    retryOf: trial.retryOf,
    task: trial.task,
    state,
    evaluation: trial.isEvaluation,
    ...(trial.seal === undefined ? {} : { seal: trial.seal }),
    sealSequence: trial.sealSequence,
    ...(trial.termination === undefined ? {} : { termination: trial.termination }),
    ...outcomeOf(trial, closing),
    ...(closing?.reward === undefined ? {} : { reward: closing.reward }),
    reason: trial.reason ?? "",
    launchedVersion: BigInt(trial.launchedVersion),
    atMs: BigInt(atMs),
    stages: [...trial.stageTimes],
    proxyAddress: trial.session?.proxyAddress ?? "",
    session: trial.session?.id ?? "",
    ...(trial.patch === undefined ? {} : { patch: trial.patch }),
  };
}

/** Before the end only a fault of the task is known: a restart in between must not take it for the host's. */
function outcomeOf(
  { isTaskFault }: RecordEffect["trial"],
  closing: RecordEffect["closing"],
): Pick<TransitionInit, "outcome"> {
  if (closing !== undefined) return { outcome: closing.outcome };
  return isTaskFault === true ? { outcome: Outcome.INVALID_TASK } : {};
}
