/**
 * Owns what the run reducer may ask the edge to do. Does not do it (see edge/).
 */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EvaluationRecordSchema, GroupRecordSchema, RunPhase, TrialState } from "@mortise/contracts";
import type { Closing } from "../trial/standing.js";
import type { Trial, TrialStage } from "../trial/trial.js";

/** The credentials and address a launch carries; they pass through, state never holds them. */
export interface SessionGrant {
  readonly token: string;
  readonly modelAddress: string;
  readonly model: string;
  /** For the listener in the sandbox, never for what is inside. */
  readonly listenerKey: string;
}

export type Effect =
  /** Open the trial's session at a live proxy; answers "opened". */
  | { readonly kind: "open"; readonly trial: Trial }
  /** Append to the trial's log. */
  | { readonly kind: "record"; readonly trial: Trial; readonly state: TrialState; readonly closing?: Closing }
  | { readonly kind: "launch"; readonly trial: Trial; readonly grant: SessionGrant }
  | { readonly kind: "start-agent"; readonly trial: Trial }
  | { readonly kind: "cancel-sandbox"; readonly trial: Trial; readonly reason: string }
  /** Seal the trial's session; answers "sealed". */
  | { readonly kind: "seal"; readonly trial: Trial }
  | { readonly kind: "verify"; readonly trial: Trial }
  /** Answer "deadline" when the trial may still be in this stage after `ms`. */
  | { readonly kind: "watch"; readonly trial: string; readonly stage: TrialStage; readonly ms: number }
  | {
      readonly kind: "publish-group";
      readonly record: MessageInitShape<typeof GroupRecordSchema> & { readonly group: string };
      readonly trials: readonly string[];
    }
  /** Answers "evaluation-stored". */
  | {
      readonly kind: "publish-evaluation";
      readonly record: MessageInitShape<typeof EvaluationRecordSchema> & { readonly name: string };
      readonly trials: readonly string[];
    }
  | { readonly kind: "publish-phase"; readonly phase: RunPhase };
