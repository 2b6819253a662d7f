/**
 * Owns what a closed trial counts as, from its termination, outcome and reward alone: the same function judges
 * a trial that closes now and one read back from the log. Does not decide about groups.
 */
import { Outcome, type SessionSealed, TerminationReason, type Verdict } from "@mortise/contracts";
import { TERMINATION_POLICY } from "../termination-policy.js";

/** valid: its reward counts. The others are excluded for that reason; only infra (and stale evaluation) is retried. */
export type Standing = "valid" | "infra" | "task" | "tamper" | "cancelled" | "stale";

/** A missing or non-finite reward is never read as 0 (C10): such a trial is an infrastructure failure. */
export function standingOf(termination: TerminationReason, outcome: Outcome, reward?: number): Standing {
  const { training } = TERMINATION_POLICY[termination];
  const isRewarded = reward !== undefined && Number.isFinite(reward);
  if (training === "infra" && outcome === Outcome.INVALID_TASK) return "task";
  // A penalised tamper closes with its reward under its own termination; see closingOf.
  if (training !== "verdict") return training;
  switch (outcome) {
    case Outcome.RESOLVED:
    case Outcome.UNRESOLVED:
      return isRewarded ? "valid" : "infra";
    case Outcome.INVALID_TASK:
      return "task";
    case Outcome.INVALID_TAMPER:
      return isRewarded ? "valid" : "tamper";
    default:
      return "infra";
  }
}

export interface Closing {
  readonly termination: TerminationReason;
  readonly outcome: Outcome;
  readonly reward?: number;
}

/**
 * What a verdict makes of a trial. `tamper = "penalise"` turns conclusive evidence into reward 0; anything less
 * is excluded. A verdict that says resolved or unresolved without a reward is the verifier's failure.
 */
export function closingOf(
  termination: TerminationReason,
  verdict: Pick<Verdict, "outcome" | "reward" | "conclusive">,
  tamper: "exclude" | "penalise",
): Closing {
  const { outcome, reward } = verdict;
  if (outcome === Outcome.INVALID_TASK) return { termination, outcome };
  if (outcome === Outcome.INVALID_TAMPER) {
    return tamper === "penalise" && verdict.conclusive
      ? { termination, outcome, reward: 0 }
      : { termination: TerminationReason.TAMPER, outcome };
  }
  if (standingOf(termination, outcome, reward) === "valid") return { termination, outcome, reward: reward! };
  return { termination: TerminationReason.VERIFIER_FAILURE, outcome: Outcome.INVALID_INFRA };
}

/**
 * Why the trial really ended, once the session's side is known: a session that failed outweighs what the
 * sandbox saw, and a harness that stopped because its budget was spent did not crash.
 */
export function terminationWithSeal(termination: TerminationReason, seal: SessionSealed): TerminationReason {
  if (!TERMINATION_POLICY[termination].isVerified) return termination;
  if (seal.failure !== "") {
    // The seal names the error code of the last failed model call.
    return seal.failure.includes("ENGINE")
      ? TerminationReason.ENGINE_FAILURE
      : TerminationReason.PROXY_FAILURE;
  }
  if (termination !== TerminationReason.COMPLETED && termination !== TerminationReason.AGENT_CRASH)
    return termination;
  return BUDGET_TERMINATIONS[seal.budgetReached] ?? termination;
}

/** What each budget of a session, as the proxy names it in the seal, ends a trial with. */
const BUDGET_TERMINATIONS: Readonly<Record<string, TerminationReason>> = {
  turns: TerminationReason.TURN_LIMIT,
  turns_without_call: TerminationReason.TURN_LIMIT,
  prompt_tokens: TerminationReason.TOKEN_LIMIT,
  response_tokens: TerminationReason.TOKEN_LIMIT,
  wall_clock: TerminationReason.AGENT_TIMEOUT,
};
