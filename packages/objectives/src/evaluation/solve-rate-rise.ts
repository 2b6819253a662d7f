/**
 * Owns the question "did the solve rate rise, and how surely?" from paired attempts at the same tasks.
 * Does not own evaluation itself.
 *
 * The unit of uncertainty is the TASK: attempts at one task share its difficulty, so they are averaged within
 * the task first, and the intervals are over tasks.
 */
import { mean, quantile, standardDeviation } from "../statistics.js";
import { type Random, seededRandom } from "./random.js";
import { Z_95 } from "./wilson.js";

/** Outcomes in [0, 1] (1 = resolved) of one task's attempts before and after training, each non-empty. */
export interface PairedTask {
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export interface Rise {
  /** Mean over tasks of (after − before). */
  readonly rise: number;
  readonly interval: readonly [number, number];
}

/** Normal interval rise ± 1.96·s/√n over the tasks' differences. `null` for fewer than two tasks. */
export function clusteredRise(tasks: readonly PairedTask[]): Rise | null {
  const differences = tasks.map(difference);
  const rise = mean(differences);
  const spread = standardDeviation(differences, 1);
  if (rise === null || spread === null) return null;
  const half = (Z_95 * spread) / Math.sqrt(differences.length);
  return { rise, interval: [rise - half, rise + half] };
}

export interface BootstrapOptions {
  readonly seed: number;
  readonly resamples: number;
  /** Resample the attempts within each drawn task too; default false. */
  readonly resampleAttempts?: boolean;
}

/** Percentile interval (2.5 %, 97.5 %) of a bootstrap over tasks. `null` for no tasks. */
export function bootstrapRise(tasks: readonly PairedTask[], options: BootstrapOptions): Rise | null {
  const rise = mean(tasks.map(difference));
  if (rise === null) return null;
  const random = seededRandom(options.seed);
  const rises = new Float64Array(options.resamples);
  for (let b = 0; b < rises.length; b++) {
    let total = 0;
    for (let i = 0; i < tasks.length; i++) {
      const task = drawn(tasks, random);
      total += difference(options.resampleAttempts ? resampled(task, random) : task);
    }
    rises[b] = total / tasks.length;
  }
  return { rise, interval: [quantile(rises, 0.025) ?? rise, quantile(rises, 0.975) ?? rise] };
}

function difference(task: PairedTask): number {
  const before = mean(task.before);
  const after = mean(task.after);
  if (before === null || after === null) throw new RangeError("a paired task needs attempts on both sides");
  return after - before;
}

function resampled(task: PairedTask, random: Random): PairedTask {
  return {
    before: task.before.map(() => drawn(task.before, random)),
    after: task.after.map(() => drawn(task.after, random)),
  };
}

function drawn<T>(values: readonly T[], random: Random): T {
  return values[Math.floor(random() * values.length)]!;
}
