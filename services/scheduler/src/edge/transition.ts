/** Owns the message form of a transition. Does not publish it. */
import type { Effect } from "../run/effects.js";
import type { TransitionInit } from "./journal.js";

/** The transition of a "record" effect; the journal adds run and fence. */
export function transitionOf(effect: Extract<Effect, { kind: "record" }>, atMs: number): TransitionInit {
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
    ...(closing === undefined ? {} : { outcome: closing.outcome }),
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
