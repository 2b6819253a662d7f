/**
 * Owns reading the scheduler's own log back: the last transition of every trial, with fencing.
 * Does not ask anything again (see run/resume.ts).
 *
 * L1  A transition written under a fence lower than one already seen in the stream is from a scheduler that had
 *     lost its lease: its place in the sequence counts, its content does not.
 */
import { Outcome, TrialState, type TrialTransition } from "@mortise/contracts";
import { standingOf } from "../trial/standing.js";
import {
  type ClosedTrial,
  outcomeOrUnspecified,
  sealFacts,
  type Trial,
  type TrialStage,
} from "../trial/trial.js";

/** Folds transitions in stream order. */
export class TrialLog {
  readonly #last = new Map<string, TrialTransition>();
  readonly #sequences = new Map<string, number>();
  #fence = 0n;

  add(transition: TrialTransition, sequence: number): void {
    this.#sequences.set(transition.trial, sequence);
    if (transition.fence < this.#fence) return; // L1
    this.#fence = transition.fence;
    this.#last.set(transition.trial, transition);
  }

  /** The last valid transition of each trial. */
  get trials(): ReadonlyMap<string, TrialTransition> {
    return this.#last;
  }

  /** Sequence of the last message on each trial's subject, valid or not: what the next append must name. */
  get sequences(): ReadonlyMap<string, number> {
    return this.#sequences;
  }
}

const LIVE_STAGES: Readonly<Partial<Record<TrialState, TrialStage>>> = {
  [TrialState.LAUNCHED]: "launched",
  [TrialState.WARM]: "warm",
  [TrialState.RUNNING]: "running",
  [TrialState.SEALED]: "sealing",
  [TrialState.VERIFYING]: "verifying",
};

/** The live trial a transition describes; undefined when it is closed. */
export function liveTrial(last: TrialTransition, rngKey: string): Trial | undefined {
  const stage = LIVE_STAGES[last.state];
  if (stage === undefined) return undefined;
  return {
    id: last.trial,
    group: last.group,
    place: last.slotInGroup,
    retry: last.retry,
    retryOf: last.retryOf,
    isEvaluation: last.evaluation,
    task: { id: last.task?.id ?? "", digest: last.task?.digest ?? "" },
    rngKey,
    stage,
    launchedVersion: Number(last.launchedVersion),
    session: { proxyAddress: last.proxyAddress, id: last.session },
    termination: last.termination,
    ...(last.outcome === Outcome.INVALID_TASK ? { isTaskFault: true } : {}),
    ...(last.patch === undefined ? {} : { patch: last.patch }),
    ...(last.seal === undefined ? {} : { seal: last.seal }),
    sealSequence: last.sealSequence,
    stageTimes: last.stages,
  };
}

/** The closed trial a final transition describes. */
export function closedTrial(last: TrialTransition): ClosedTrial {
  const outcome = outcomeOrUnspecified(last.outcome);
  return {
    id: last.trial,
    retry: last.retry,
    standing: standingOf(last.termination, outcome, last.reward),
    termination: last.termination,
    outcome,
    ...(last.reward === undefined ? {} : { reward: last.reward }),
    ...sealFacts(last.seal, last.sealSequence),
  };
}
