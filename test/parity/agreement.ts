/** How well two lists of log-probabilities of the same tokens agree. Sums in float64. */

export interface Agreement {
  readonly tokens: number;
  /** Of log-probabilities, and of probabilities. */
  readonly pearson: number;
  readonly pearsonOfProbabilities: number;
  readonly meanDelta: number;
  readonly p99Delta: number;
  readonly greatestDelta: number;
}

export function agreementOf(ours: readonly number[], theirs: readonly number[]): Agreement {
  const deltas = ours.map((value, at) => Math.abs(value - theirs[at]!)).sort((a, b) => a - b);
  return {
    tokens: ours.length,
    pearson: pearson(ours, theirs),
    pearsonOfProbabilities: pearson(ours.map(Math.exp), theirs.map(Math.exp)),
    meanDelta: deltas.reduce((sum, delta) => sum + delta, 0) / deltas.length,
    p99Delta: deltas[Math.ceil(0.99 * deltas.length) - 1]!,
    greatestDelta: deltas.at(-1)!,
  };
}

function pearson(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [ab, aa, bb] = [0, 0, 0];
  a.forEach((value, at) => {
    const [x, y] = [value - meanA, b[at]! - meanB];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  });
  return ab / Math.sqrt(aa * bb);
}
