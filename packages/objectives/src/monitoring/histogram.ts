/**
 * Owns the fixed-range histogram in which per-token log-ratios are published.
 * Does not own which values go in.
 */
export interface Histogram {
  readonly low: number;
  readonly high: number;
  /** Equal-width bins over [low, high). */
  readonly counts: readonly number[];
  readonly underflow: number;
  readonly overflow: number;
}

/** NaN values (absent, C10) fall in no bin. A value equal to `high` is overflow. */
export function histogram(values: ArrayLike<number>, low: number, high: number, bins: number): Histogram {
  if (!(high > low) || !Number.isInteger(bins) || bins < 1)
    throw new RangeError("a histogram needs low < high and bins ≥ 1");
  const counts = new Array<number>(bins).fill(0);
  let underflow = 0;
  let overflow = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value < low) underflow += 1;
    else if (value >= high) overflow += 1;
    else if (!Number.isNaN(value))
      counts[Math.min(bins - 1, Math.floor(((value - low) / (high - low)) * bins))]! += 1;
  }
  return { low, high, counts, underflow, overflow };
}
