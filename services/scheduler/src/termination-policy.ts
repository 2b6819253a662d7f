/**
 * Owns the termination policy of DESIGN §6 as data: for every reason a trial may end, whether it is verified
 * and what training may do with it. Does not act on it (see trial/reducer.ts, trial/standing.ts).
 */
import { TerminationReason } from "@mortise/contracts";

/**
 * verdict: trained with the verifier's reward. infra: out of statistics, loss and denominators, and retried.
 * The others are excluded under their own name and not retried.
 */
export type TrainingUse = "verdict" | "infra" | "cancelled" | "stale" | "tamper";

export interface TerminationRule {
  readonly isVerified: boolean;
  readonly training: TrainingUse;
}

const VERIFIED: TerminationRule = { isVerified: true, training: "verdict" };
const INFRASTRUCTURE: TerminationRule = { isVerified: false, training: "infra" };

export const TERMINATION_POLICY: Readonly<Record<TerminationReason, TerminationRule>> = {
  // A reason nobody gave says nothing about the agent.
  [TerminationReason.UNSPECIFIED]: INFRASTRUCTURE,
  [TerminationReason.COMPLETED]: VERIFIED,
  [TerminationReason.TURN_LIMIT]: VERIFIED,
  [TerminationReason.TOKEN_LIMIT]: VERIFIED,
  [TerminationReason.AGENT_TIMEOUT]: VERIFIED,
  [TerminationReason.AGENT_CRASH]: VERIFIED,
  [TerminationReason.RESOURCE_LIMIT]: VERIFIED,
  [TerminationReason.SETUP_FAILED]: INFRASTRUCTURE,
  [TerminationReason.SANDBOX_LOST]: INFRASTRUCTURE,
  [TerminationReason.PROXY_FAILURE]: INFRASTRUCTURE,
  [TerminationReason.ENGINE_FAILURE]: INFRASTRUCTURE,
  [TerminationReason.VERIFIER_FAILURE]: INFRASTRUCTURE,
  [TerminationReason.CANCELLED]: { isVerified: false, training: "cancelled" },
  [TerminationReason.STALE]: { isVerified: false, training: "stale" },
  [TerminationReason.TAMPER]: { isVerified: false, training: "tamper" },
};
