/**
 * Owns telling why trials of a run count in no rate: how each ended and the scheduler's reason, the same ones together.
 * Does not read records (run-records.ts) and does not count rates (packages/evaluation).
 */
import { Outcome, TerminationReason, type TrialTransition } from "@mortise/contracts";

/** Of different causes, how many are shown; the rest is in `--json`. */
const MOST_SHOWN = 5;
const COUNTED: ReadonlySet<Outcome | undefined> = new Set([Outcome.RESOLVED, Outcome.UNRESOLVED]);

/** Trials without a verdict that counts which ended for one cause. */
export interface LostTrials {
  readonly termination: string;
  /** Empty where the scheduler gave none. */
  readonly reason: string;
  readonly trials: number;
  /** Sorted. */
  readonly tasks: readonly string[];
}

/** By cause, the most frequent first. @param closed the last transition of each trial that has ended */
export function lostTrials(closed: Iterable<TrialTransition>): LostTrials[] {
  const causes = new Map<
    string,
    { termination: string; reason: string; trials: number; tasks: Set<string> }
  >();
  for (const { outcome, termination, reason, task } of closed) {
    if (COUNTED.has(outcome)) continue;
    const name = TerminationReason[termination].toLowerCase().replaceAll("_", "-");
    const key = `${name}\n${reason}`;
    const cause = causes.get(key) ?? { termination: name, reason, trials: 0, tasks: new Set() };
    cause.trials++;
    if (task !== undefined) cause.tasks.add(task.id);
    causes.set(key, cause);
  }
  return [...causes.values()]
    .map((cause) => ({ ...cause, tasks: [...cause.tasks].sort() }))
    .sort((a, b) => b.trials - a.trials);
}

/** One line a cause; a task is named where only one is concerned. */
export function lostLines(lost: readonly LostTrials[]): string[] {
  const shown = lost.slice(0, MOST_SHOWN).map(({ termination, reason, trials, tasks }) => {
    const where = tasks.length === 1 ? `of ${tasks[0]}` : `of ${tasks.length} tasks`;
    return `lost: ${trials} ${where}, ${termination}${reason === "" ? "" : `: ${reason}`}`;
  });
  const rest = lost.slice(MOST_SHOWN).reduce((sum, { trials }) => sum + trials, 0);
  return rest === 0 ? shown : [...shown, `lost: ${rest} for other reasons`];
}
