/**
 * Owns the reason a trial ended, derived from how its harness ended. Pure.
 * Does not decide what a reason means for training (the scheduler's termination policy does).
 */
import { KeepPolicy, TerminationReason } from "@mortise/contracts";
import type { HarnessEnd } from "@mortise/harness";
import type { ExecResult } from "../backend/types.js";
import type { Patch } from "../patch/patch.js";

export interface EndEvidence {
  readonly result: ExecResult;
  /** Absent when the trial was cancelled or has no result. */
  readonly patch?: Patch;
  /** The last connection to the proxy could not be made. */
  readonly isModelUnreachable: boolean;
  /** What the harness's adapter makes of its end. */
  readonly end: Pick<HarnessEnd, "kind">;
}

const BY_KIND: Record<HarnessEnd["kind"], TerminationReason> = {
  completed: TerminationReason.COMPLETED,
  "turn-limit": TerminationReason.TURN_LIMIT,
  "token-limit": TerminationReason.TOKEN_LIMIT,
  "agent-crash": TerminationReason.AGENT_CRASH,
  "proxy-failure": TerminationReason.PROXY_FAILURE,
};

/** An infrastructure failure always wins over what the harness made of it (fail closed). */
export function terminationOf(evidence: EndEvidence): TerminationReason {
  const { result, patch, isModelUnreachable, end } = evidence;
  const { outcome, usage } = result;
  switch (outcome.kind) {
    case "refused":
      return TerminationReason.SETUP_FAILED;
    case "lost":
      return TerminationReason.SANDBOX_LOST;
    case "cancelled":
      return TerminationReason.CANCELLED;
    case "out-of-memory":
      return TerminationReason.RESOURCE_LIMIT;
    case "timeout":
      return isModelUnreachable ? TerminationReason.PROXY_FAILURE : TerminationReason.AGENT_TIMEOUT;
    case "signalled":
      return TerminationReason.AGENT_CRASH;
    case "exited":
  }
  if (end.kind === "agent-crash" && isModelUnreachable) return TerminationReason.PROXY_FAILURE;
  if (end.kind === "agent-crash" && (usage.pidsRefusals ?? 0) > 0) return TerminationReason.RESOURCE_LIMIT;
  if (end.kind !== "completed") return BY_KIND[end.kind];
  const isTooLarge = patch?.skipped.some(({ reason }) => reason === "over-limit") ?? false;
  return isTooLarge ? TerminationReason.RESOURCE_LIMIT : TerminationReason.COMPLETED;
}

/** Whether a reason means that there is no result to grade, only a failure to report. */
export function isFailure(reason: TerminationReason): boolean {
  return reason === TerminationReason.SETUP_FAILED || reason === TerminationReason.SANDBOX_LOST;
}

/** Whether a trial that ended so leaves its sandbox to be looked into. */
export function keeps(policy: KeepPolicy, reason: TerminationReason): boolean {
  if (policy === KeepPolicy.ALWAYS) return true;
  return policy === KeepPolicy.FAILED && reason !== TerminationReason.COMPLETED;
}
