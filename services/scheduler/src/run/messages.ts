/**
 * Owns what the run actor may be told. Every message is a fact that happened; none carries a clock.
 */
import type {
  Content,
  SessionSealed,
  StageTime,
  StepRecord,
  TerminationReason,
  Verdict,
} from "@mortise/contracts";
import type { TrialStage } from "../trial/trial.js";
import type { SessionGrant } from "./effects.js";

/** What can happen to one trial. Any of them may arrive late, twice or for a trial that is closed. */
export type TrialFact =
  | {
      readonly kind: "opened";
      readonly session: string;
      readonly proxyAddress: string;
      readonly grant: SessionGrant;
    }
  | { readonly kind: "prepared"; readonly address: string; readonly lease: string }
  | {
      readonly kind: "ended";
      readonly termination: TerminationReason;
      readonly patch?: Content;
      readonly stages: readonly StageTime[];
    }
  | {
      readonly kind: "failed";
      readonly termination: TerminationReason;
      readonly reason: string;
      /** The task is at fault, not what it ran on. */
      readonly isTaskFault?: boolean;
      readonly stages: readonly StageTime[];
    }
  | { readonly kind: "sealed"; readonly seal: SessionSealed; readonly sequence: bigint }
  | { readonly kind: "judged"; readonly verdict: Verdict }
  | { readonly kind: "deadline"; readonly stage: TrialStage }
  | { readonly kind: "cancelled"; readonly reason: string };

export type RunMessage =
  | { readonly kind: "trial"; readonly trial: string; readonly fact: TrialFact }
  /** The run's current weights changed. */
  | { readonly kind: "weights"; readonly version: number }
  /** An engine samples from these weights. */
  | { readonly kind: "receipt"; readonly version: number }
  /** No receipt came for a while. An engine loads a run's weights at its first session: opening one must not wait. */
  | { readonly kind: "receipt-overdue"; readonly version: number }
  | { readonly kind: "step"; readonly record: StepRecord }
  | { readonly kind: "evaluation-stored"; readonly name: string }
  /** Everything stored before the start has been replayed: the run may act. */
  | { readonly kind: "reconciled" }
  /** Stops admission; `cancelRunning` also ends agents that run. */
  | { readonly kind: "drain"; readonly cancelRunning: boolean }
  /** A stream refused a publish for lack of space, or accepts again. */
  | { readonly kind: "storage"; readonly isFull: boolean };
