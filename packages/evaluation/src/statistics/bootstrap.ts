/**
 * Owns intervals of any statistic of tasks by the clustered bootstrap (Efron 1979; clusters as in Cameron, Gelbach
 * and Miller 2008, §II): whole tasks are drawn with replacement, since attempts at one task share its difficulty.
 * The same seed gives the same interval on any machine.
 */
import { quantile, seededRandom } from "@mortise/objectives";

export interface BootstrapSettings {
  readonly seed: number;
  readonly resamples: number;
}

export const BOOTSTRAP: BootstrapSettings = { seed: 1, resamples: 2_000 };

export type Interval = readonly [low: number, high: number];

/** Of a two-sided 95 % interval. */
const TAILS = [0.025, 0.975] as const;

/**
 * Percentile interval (2.5 %, 97.5 %) of `statistic` over resampled tasks. `null` for fewer than two tasks, of which
 * nothing can be drawn but the same again, and where the statistic is undefined for a resample.
 * @param statistic of a list as long as `tasks`; must not depend on their order
 */
export function bootstrapInterval<T>(
  tasks: readonly T[],
  statistic: (drawn: readonly T[]) => number | null,
  { seed, resamples }: BootstrapSettings = BOOTSTRAP,
): Interval | null {
  if (tasks.length < 2) return null;
  const random = seededRandom(seed);
  const values = new Float64Array(resamples);
  const drawn = new Array<T>(tasks.length);
  for (let b = 0; b < resamples; b++) {
    for (let i = 0; i < drawn.length; i++) drawn[i] = tasks[Math.floor(random() * tasks.length)]!;
    const value = statistic(drawn);
    if (value === null) return null;
    values[b] = value;
  }
  return [quantile(values, TAILS[0])!, quantile(values, TAILS[1])!];
}
