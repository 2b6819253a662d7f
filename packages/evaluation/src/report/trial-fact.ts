/**
 * Owns what a report knows of one trial that has ended, and which trials count. Does not read records.
 *
 * A trial counts in a statistic only with the verdict resolved or unresolved. Every other one is lost: counted, with
 * its reason, and never scored 0.
 */
import type { TaskAttempts } from "../statistics/task-attempts.js";

export type Verdict = "resolved" | "unresolved" | "invalid(infra)" | "invalid(task)" | "invalid(tamper)";

export interface TrialFact {
  readonly trial: string;
  /** `training`, or the name of an evaluation. */
  readonly set: string;
  readonly group: string;
  /** Position in the group; a retry has that of the trial it repeats. */
  readonly slot: number;
  readonly task: string;
  /** Lower case with hyphens, as `turn-limit`. */
  readonly termination: string;
  /** Absent: never verified. */
  readonly verdict: Verdict | undefined;
  /** How often its place in the group was tried before. */
  readonly retry: number;
  /** Absent without a sealed session. */
  readonly sampledTokens: number | undefined;
  readonly turns: number | undefined;
  /** A stage may come twice: the verifier has a sandbox of its own to set up. */
  readonly stages: readonly { readonly stage: string; readonly wallMs: number }[];
  /** By which one of several attempts would be chosen; absent where nothing scored it. */
  readonly score: number | undefined;
}

export function isCounted({ verdict }: TrialFact): boolean {
  return verdict === "resolved" || verdict === "unresolved";
}

/** The counted attempts by task (or another key), by name; tasks that lost every attempt are in none. */
export function attemptsBy(trials: readonly TrialFact[], key: "task" | "group" = "task"): TaskAttempts[] {
  return [...countedBy(trials, key)].map(([task, attempts]) => ({
    task,
    outcomes: attempts.map(({ verdict }) => verdict === "resolved"),
  }));
}

/** Counted trials by key, keys in order. */
export function countedBy(
  trials: readonly TrialFact[],
  key: "task" | "group",
): ReadonlyMap<string, readonly TrialFact[]> {
  const found = new Map<string, TrialFact[]>();
  for (const trial of trials) {
    if (!isCounted(trial)) continue;
    const known = found.get(trial[key]);
    if (known) known.push(trial);
    else found.set(trial[key], [trial]);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}
