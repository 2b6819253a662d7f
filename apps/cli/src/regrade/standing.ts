/**
 * Owns what stands of a run's verdicts: the last regrade of a trial where there is one, else its verdict. Pure.
 */
import { Outcome, TerminationReason, type Verdict } from "@mortise/contracts";
import type { RunVerdicts } from "./run-verdicts.js";

/** The words of DESIGN §2. */
export const OUTCOME_NAMES: Readonly<Record<Outcome, string>> = {
  [Outcome.UNSPECIFIED]: "none",
  [Outcome.RESOLVED]: "resolved",
  [Outcome.UNRESOLVED]: "unresolved",
  [Outcome.INVALID_INFRA]: "invalid(infra)",
  [Outcome.INVALID_TASK]: "invalid(task)",
  [Outcome.INVALID_TAMPER]: "invalid(tamper)",
};

const INFRASTRUCTURE: ReadonlySet<TerminationReason> = new Set([
  TerminationReason.SETUP_FAILED,
  TerminationReason.SANDBOX_LOST,
  TerminationReason.PROXY_FAILURE,
  TerminationReason.ENGINE_FAILURE,
  TerminationReason.VERIFIER_FAILURE,
]);

/** The verdict that stands, by trial. */
export function standingVerdicts({
  verdicts,
  regrades,
}: Pick<RunVerdicts, "verdicts" | "regrades">): ReadonlyMap<string, Verdict> {
  return new Map(
    [...verdicts].map(([trial, { message }]) => [trial, regrades.get(trial)?.message.judged ?? message]),
  );
}

/** How many trials have each outcome, those without any left out. */
export function outcomeCounts(verdicts: Iterable<Verdict>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of verdicts) {
    const name = OUTCOME_NAMES[outcome];
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** For a line of text; "none" when there are none. */
export function countsLine(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(([name, count]) => `${name} ${count}`);
  return parts.length === 0 ? "none" : parts.join(", ");
}

/** Whether a trial says nothing of the policy because machinery failed. */
export function isInfraFailed(
  trial: string,
  run: RunVerdicts,
  standing: ReadonlyMap<string, Verdict>,
): boolean {
  const outcome = standing.get(trial)?.outcome;
  if (outcome !== undefined) return outcome === Outcome.INVALID_INFRA;
  return INFRASTRUCTURE.has(run.trials.get(trial)?.termination ?? TerminationReason.UNSPECIFIED);
}

/** Tasks at which every trial of the run failed for its machinery: the run says nothing of them. */
export function infraFailedTasks(run: RunVerdicts): ReadonlySet<string> {
  const standing = standingVerdicts(run);
  const failed = new Set<string>();
  const told = new Set<string>();
  for (const [trial, { task }] of run.trials)
    if (task !== undefined) (isInfraFailed(trial, run, standing) ? failed : told).add(task.id);
  return new Set([...failed].filter((task) => !told.has(task)));
}
