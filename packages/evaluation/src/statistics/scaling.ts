/**
 * Owns the scaling curve: what choosing one of n attempts by a score is worth (best@n) against an oracle that would
 * always choose a resolved one (pass@n). Does not own scores.
 */
import { bestAtK, passAtK, type ScoredAttempt } from "@mortise/objectives";
import { attemptCounts } from "./solve-summary.js";

/** Attempts at one task, scored; a higher score is chosen before a lower one. */
export interface ScoredTask {
  readonly task: string;
  readonly attempts: readonly ScoredAttempt[];
}

export interface ScalingPoint {
  readonly n: number;
  /** Mean over tasks of the expected outcome of the best-scored of n random attempts, ties shared. */
  readonly best: number;
  /** Mean over tasks of pass@n: the ceiling of every choice. */
  readonly oracle: number;
}

/** For n = 1, 2, 4, …, up to what every task has. At n = 1 both are the solve rate. Empty without tasks. */
export function scalingCurve(tasks: readonly ScoredTask[]): ScalingPoint[] {
  const most = tasks.reduce(
    (least, { attempts }) => Math.min(least, attempts.length),
    tasks[0]?.attempts.length ?? 0,
  );
  const meanOf = (of: (task: ScoredTask) => number) =>
    tasks.reduce((sum, task) => sum + of(task), 0) / tasks.length;
  return attemptCounts(most).map((n) => ({
    n,
    best: meanOf(({ attempts }) => bestAtK(attempts, n)!),
    oracle: meanOf(({ attempts }) => {
      const solved = attempts.filter(({ isResolved }) => isResolved).length;
      return passAtK(attempts.length, solved, n)!;
    }),
  }));
}
