/**
 * Owns the shapes of a trial in the scheduler: a live one, and what is kept of a closed one.
 * Does not own how it moves (see reducer.ts).
 */
import {
  type Content,
  Outcome,
  type SessionSealed,
  type StageTime,
  type TaskRef,
  type TerminationReason,
} from "@mortise/contracts";
import type { Standing } from "./standing.js";

/**
 * queued: waits for room. opening: its session is being opened. launched: a sandbox-manager sets it up.
 * warm: prepared, waits for a slot. running: holds a slot. sealing: ended, its session is being sealed.
 * verifying: waits for the verdict. A closed trial is no longer live.
 */
export type TrialStage = "queued" | "opening" | "launched" | "warm" | "running" | "sealing" | "verifying";

export type TaskName = Pick<TaskRef, "id" | "digest">;

export interface Trial {
  readonly id: string;
  /** Group id, or the name of the evaluation. */
  readonly group: string;
  /** Position in the group, from 0. */
  readonly place: number;
  readonly retry: number;
  /** Empty for a first trial. */
  readonly retryOf: string;
  readonly isEvaluation: boolean;
  readonly task: TaskName;
  /** Keys the sampling noise at the proxy. */
  readonly rngKey: string;
  readonly stage: TrialStage;
  /** Policy version to be sampled from when the session was opened: no token is expected to be older. */
  readonly launchedVersion: number;
  readonly session?: { readonly proxyAddress: string; readonly id: string };
  readonly sandbox?: { readonly address: string; readonly lease: string };
  readonly termination?: TerminationReason;
  readonly reason?: string;
  /** It could not run because of its task: known before it is sealed, and what it closes with. */
  readonly isTaskFault?: boolean;
  readonly patch?: Content;
  readonly seal?: SessionSealed;
  /** Sequence of the seal on CAPTURES; 0 before. */
  readonly sealSequence: bigint;
  readonly stageTimes: readonly StageTime[];
}

/** What a group needs to know of a trial that is over. */
export interface ClosedTrial {
  readonly id: string;
  readonly retry: number;
  readonly standing: Standing;
  readonly termination: TerminationReason;
  readonly outcome: Outcome;
  /** Present exactly when the standing is "valid". */
  readonly reward?: number;
  readonly sampledTokens: bigint;
  readonly lowestVersion?: bigint;
  readonly highestVersion?: bigint;
  readonly turnSequences: readonly bigint[];
  readonly sealSequence: bigint;
}

/** Everything about a closed trial that its seal says. */
export function sealFacts(
  seal: SessionSealed | undefined,
  sealSequence: bigint,
): Pick<
  ClosedTrial,
  "sampledTokens" | "lowestVersion" | "highestVersion" | "turnSequences" | "sealSequence"
> {
  if (seal === undefined) return { sampledTokens: 0n, turnSequences: [], sealSequence };
  return {
    sampledTokens: seal.sampledTokens,
    ...(seal.lowestVersion === undefined ? {} : { lowestVersion: seal.lowestVersion }),
    ...(seal.highestVersion === undefined ? {} : { highestVersion: seal.highestVersion }),
    turnSequences: seal.turns.map((turn) => turn.sequence),
    sealSequence,
  };
}

/** An outcome as the log stores it: absent before a verdict. */
export function outcomeOrUnspecified(outcome: Outcome | undefined): Outcome {
  return outcome ?? Outcome.UNSPECIFIED;
}
