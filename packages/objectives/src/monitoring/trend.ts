/**
 * Owns the test whether a series of step metrics really moves: least-squares slope over its standard error.
 * |t| < 2 is noise. `null` with fewer than three points or no residual variance and no slope.
 */
import { mean } from "../statistics.js";

export interface Trend {
  /** Change per step. */
  readonly slope: number;
  /** slope / standard error; ±Infinity for a perfect line. */
  readonly t: number;
}

export function trend(values: readonly number[]): Trend | null {
  const n = values.length;
  const centre = mean(values);
  if (n < 3 || centre === null) return null;
  const middle = (n - 1) / 2;
  let xx = 0;
  let xy = 0;
  values.forEach((value, i) => {
    xx += (i - middle) ** 2;
    xy += (i - middle) * (value - centre);
  });
  const slope = xy / xx;
  const residual = values.reduce(
    (total, value, i) => total + (value - centre - slope * (i - middle)) ** 2,
    0,
  );
  const error = Math.sqrt(residual / (n - 2) / xx);
  if (error === 0) return slope === 0 ? null : { slope, t: Math.sign(slope) * Number.POSITIVE_INFINITY };
  return { slope, t: slope / error };
}
