/**
 * Owns the numbers told of one set of attempts: how many tasks and attempts, their solve rate with intervals, shapes,
 * and what k attempts are worth. Lost attempts are counted by the caller and are not among these.
 */
import { passAtK, passHatK, wilsonInterval } from "@mortise/objectives";
import { BOOTSTRAP, type BootstrapSettings, bootstrapInterval, type Interval } from "./bootstrap.js";
import { type GroupShapes, groupShapes, mixedAtK } from "./shapes.js";
import { fewestAttempts, solvedOf, solveRate, type TaskAttempts } from "./task-attempts.js";

export interface SolveSummary {
  readonly tasks: number;
  /** With a valid verdict. */
  readonly attempts: number;
  readonly solved: number;
  /** Mean over tasks; `null` without tasks. */
  readonly rate: number | null;
  /** 95 %, bootstrap over tasks. */
  readonly rateInterval: Interval | null;
  /** 95 %, Wilson over all attempts as if they were independent: narrower than true where tasks have several. */
  readonly attemptInterval: Interval | null;
  readonly shapes: GroupShapes;
  /** For k = 1, 2, 4, …, and the fewest attempts of any task. */
  readonly at: readonly AtK[];
}

export interface AtK {
  readonly k: number;
  /** At least one of k: mean over tasks of 1 − C(n−c, k)/C(n, k) (Chen et al. 2021). */
  readonly pass: number;
  /** All of k: mean over tasks of C(c, k)/C(n, k) (Yao et al. 2024, pass^k). */
  readonly passHat: number;
  /** At least one and not all. */
  readonly mixed: number;
}

/** @throws RangeError for a task without attempts: whoever lost them all counts them as lost */
export function solveSummary(
  tasks: readonly TaskAttempts[],
  settings: BootstrapSettings = BOOTSTRAP,
): SolveSummary {
  const empty = tasks.find(({ outcomes }) => outcomes.length === 0);
  if (empty) throw new RangeError(`task ${empty.task} has no attempts`);
  const attempts = tasks.reduce((sum, { outcomes }) => sum + outcomes.length, 0);
  const solved = tasks.reduce((sum, task) => sum + solvedOf(task), 0);
  return {
    tasks: tasks.length,
    attempts,
    solved,
    rate: solveRate(tasks),
    rateInterval: bootstrapInterval(tasks, solveRate, settings),
    attemptInterval: wilsonInterval(solved, attempts),
    shapes: groupShapes(tasks),
    at: attemptCounts(fewestAttempts(tasks)).map((k) => atK(tasks, k)),
  };
}

/** Powers of two up to `most`, and `most` itself; none for 0. */
export function attemptCounts(most: number): number[] {
  const counts: number[] = [];
  for (let k = 1; k < most; k *= 2) counts.push(k);
  return most < 1 ? [] : [...counts, most];
}

/** Every task must have k attempts. */
function atK(tasks: readonly TaskAttempts[], k: number): AtK {
  const meanOf = (estimate: typeof passAtK) =>
    tasks.reduce((sum, task) => sum + estimate(task.outcomes.length, solvedOf(task), k)!, 0) / tasks.length;
  return { k, pass: meanOf(passAtK), passHat: meanOf(passHatK), mixed: mixedAtK(tasks, k)! };
}
