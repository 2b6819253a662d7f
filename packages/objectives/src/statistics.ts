/**
 * Owns the few descriptive statistics the other modules share, in double precision.
 * Does not own tests of significance or intervals (see evaluation/).
 *
 * A statistic that is undefined for its input is `null`, never 0 (C10).
 */

/** Arithmetic mean; `null` for an empty input. */
export function mean(values: ArrayLike<number>): number | null {
  if (values.length === 0) return null;
  return sum(values) / values.length;
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/**
 * Two-pass standard deviation with `ddof` degrees of freedom removed (1 = Bessel, 0 = population).
 * `null` when fewer than `ddof + 1` values are given.
 */
export function standardDeviation(values: ArrayLike<number>, ddof: 0 | 1 = 1): number | null {
  const centre = mean(values);
  if (centre === null || values.length <= ddof) return null;
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i]! - centre) ** 2;
  return Math.sqrt(squares / (values.length - ddof));
}

/** Pearson correlation; `null` when either side has no variance or fewer than two pairs exist. */
export function pearson(x: ArrayLike<number>, y: ArrayLike<number>): number | null {
  const meanX = mean(x);
  const meanY = mean(y);
  if (meanX === null || meanY === null || x.length < 2) return null;
  let xx = 0;
  let yy = 0;
  let xy = 0;
  for (let i = 0; i < x.length; i++) {
    const dx = x[i]! - meanX;
    const dy = y[i]! - meanY;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (isConstant(x) || isConstant(y) || xx === 0 || yy === 0) return null;
  // Rounding carries nearly equal inputs past 1 by a few units in the last place.
  return Math.max(-1, Math.min(1, xy / Math.sqrt(xx * yy)));
}

/** Linear-interpolated quantile `q` in [0, 1]; `null` for an empty input. */
export function quantile(values: ArrayLike<number>, q: number): number | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const position = q * (sorted.length - 1);
  const below = Math.floor(position);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below]! + (position - below) * (sorted[above]! - sorted[below]!);
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

/** Equal values can leave a rounding residue in a variance; equality of the values themselves cannot. */
function isConstant(values: ArrayLike<number>): boolean {
  for (let i = 1; i < values.length; i++) if (values[i] !== values[0]) return false;
  return true;
}
