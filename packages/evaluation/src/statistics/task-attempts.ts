/**
 * Owns what every statistic of this package starts from: the attempts at one task that have a valid verdict.
 * A lost attempt (infrastructure, tamper, task) is in none of these lists; whoever counts it does so apart.
 */
import { mean } from "@mortise/objectives";

export interface TaskAttempts {
  readonly task: string;
  /** true = resolved; in the order the attempts ended; never empty. */
  readonly outcomes: readonly boolean[];
}

/** Attempts c of n that were resolved. */
export function solvedOf({ outcomes }: TaskAttempts): number {
  return outcomes.filter(Boolean).length;
}

/** Share of a task's attempts that were resolved, in [0, 1]. */
export function rateOf(task: TaskAttempts): number {
  return solvedOf(task) / task.outcomes.length;
}

/** Mean over tasks of each task's own rate: a task with more attempts weighs no more. `null` without tasks. */
export function solveRate(tasks: readonly TaskAttempts[]): number | null {
  return mean(tasks.map(rateOf));
}

/** The fewest attempts any task has: the largest k for which every task has an estimate. 0 without tasks. */
export function fewestAttempts(tasks: readonly TaskAttempts[]): number {
  return tasks.reduce(
    (least, { outcomes }) => Math.min(least, outcomes.length),
    tasks[0]?.outcomes.length ?? 0,
  );
}
