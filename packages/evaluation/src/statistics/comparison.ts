/**
 * Owns A against B on the tasks both attempted: the difference in points with its interval, and which tasks changed.
 * Positive is in favour of B.
 */
import { mean } from "@mortise/objectives";
import { BOOTSTRAP, type BootstrapSettings, bootstrapInterval, type Interval } from "./bootstrap.js";
import { rateOf, type TaskAttempts } from "./task-attempts.js";

export interface TaskChange {
  readonly task: string;
  /** Share of attempts resolved, in [0, 1]. */
  readonly before: number;
  readonly after: number;
}

export interface Comparison {
  /** Tasks attempted, with a valid verdict, on both sides. */
  readonly tasks: number;
  readonly onlyBefore: number;
  readonly onlyAfter: number;
  /** 100 × mean over tasks of (after − before); `null` without common tasks. */
  readonly points: number | null;
  /** 95 %, bootstrap over pairs: a task is drawn with both its sides, so that its difficulty cancels. */
  readonly pointsInterval: Interval | null;
  /** Tasks no attempt of A resolved and some attempt of B did; by name. */
  readonly won: readonly TaskChange[];
  /** The reverse. */
  readonly lost: readonly TaskChange[];
  /** Resolved on both sides at another rate, by name. */
  readonly better: readonly TaskChange[];
  readonly worse: readonly TaskChange[];
}

const POINTS = 100;

/** @param before,after each task at most once */
export function compareTasks(
  before: readonly TaskAttempts[],
  after: readonly TaskAttempts[],
  settings: BootstrapSettings = BOOTSTRAP,
): Comparison {
  const later = new Map(after.map((task) => [task.task, task]));
  const pairs = before.flatMap((task): TaskChange[] => {
    const other = later.get(task.task);
    return other ? [{ task: task.task, before: rateOf(task), after: rateOf(other) }] : [];
  });
  // A fixed order, so that the interval does not depend on the order trials ended in.
  pairs.sort((a, b) => (a.task < b.task ? -1 : 1));
  const points = (drawn: readonly TaskChange[]) => {
    const difference = mean(drawn.map((pair) => pair.after - pair.before));
    return difference === null ? null : POINTS * difference;
  };
  return {
    tasks: pairs.length,
    onlyBefore: before.length - pairs.length,
    onlyAfter: after.length - pairs.length,
    points: points(pairs),
    pointsInterval: bootstrapInterval(pairs, points, settings),
    won: pairs.filter((pair) => pair.before === 0 && pair.after > 0),
    lost: pairs.filter((pair) => pair.before > 0 && pair.after === 0),
    better: pairs.filter((pair) => pair.before > 0 && pair.after > pair.before),
    worse: pairs.filter((pair) => pair.after > 0 && pair.after < pair.before),
  };
}
