/**
 * Owns the measurement of how closely the trainer's log-probabilities reproduce the engine's on the same
 * tokens under the same weights. Does not own which weights to recompute under (DESIGN §6: the version that
 * sampled the token; the gap to newer weights is drift and is reported apart).
 *
 * With d = train − rollout and w = e^d over the n tokens that have both values:
 *   pearsonProbability, pearsonLogp   correlation of e^lp and of lp
 *   kl1 = mean(−d)   kl3 = mean(e^d − d − 1)   chi2 = mean(e^2d) − 1
 *   essFraction = (Σw)² / (n·Σw²), on raw weights
 *
 * A token with no recorded log-probability (NaN) is counted in nMissing and enters nothing (C10). Whatever is
 * undefined is null.
 */
import { effectiveSampleFraction } from "../losses/importance.js";
import { mean, pearson, quantile } from "../statistics.js";

export interface Consistency {
  readonly nTokens: number;
  readonly nMissing: number;
  readonly pearsonProbability: number | null;
  readonly pearsonLogp: number | null;
  readonly meanAbsDeltaLogp: number | null;
  readonly p99AbsDeltaLogp: number | null;
  readonly maxAbsDeltaLogp: number | null;
  readonly meanAbsDeltaProbability: number | null;
  readonly kl1: number | null;
  readonly kl3: number | null;
  readonly chi2: number | null;
  readonly essFraction: number | null;
  readonly perplexityRollout: number | null;
  readonly perplexityTrain: number | null;
  readonly logPerplexityDifference: number | null;
}

/** Compares two aligned columns of natural-log probabilities of sampled tokens. */
export function consistency(rollout: ArrayLike<number>, train: ArrayLike<number>): Consistency {
  const { r, t, nMissing } = presentPairs(rollout, train);
  const n = r.length;
  const difference = Float64Array.from(t, (value, i) => value - r[i]!);
  const absolute = difference.map(Math.abs);
  const probabilityR = r.map(Math.exp);
  const probabilityT = t.map(Math.exp);
  const logPerplexityDifference = mean(difference.map((d) => -d));
  return {
    nTokens: n,
    nMissing,
    pearsonProbability: pearson(probabilityR, probabilityT),
    pearsonLogp: pearson(r, t),
    meanAbsDeltaLogp: mean(absolute),
    p99AbsDeltaLogp: quantile(absolute, 0.99),
    maxAbsDeltaLogp: quantile(absolute, 1),
    meanAbsDeltaProbability: mean(probabilityT.map((p, i) => Math.abs(p - probabilityR[i]!))),
    kl1: logPerplexityDifference,
    kl3: mean(difference.map((d) => Math.exp(d) - d - 1)),
    chi2: minusOne(mean(difference.map((d) => Math.exp(2 * d)))),
    essFraction: n === 0 ? null : effectiveSampleFraction(difference.map(Math.exp)),
    perplexityRollout: perplexity(r),
    perplexityTrain: perplexity(t),
    logPerplexityDifference,
  };
}

function presentPairs(rollout: ArrayLike<number>, train: ArrayLike<number>) {
  if (rollout.length !== train.length) throw new RangeError("the two columns have different lengths");
  const r: number[] = [];
  const t: number[] = [];
  for (let i = 0; i < rollout.length; i++) {
    if (Number.isNaN(rollout[i]!) || Number.isNaN(train[i]!)) continue;
    r.push(rollout[i]!);
    t.push(train[i]!);
  }
  return { r: Float64Array.from(r), t: Float64Array.from(t), nMissing: rollout.length - r.length };
}

function perplexity(logProbabilities: Float64Array): number | null {
  const average = mean(logProbabilities);
  return average === null ? null : Math.exp(-average);
}

function minusOne(value: number | null): number | null {
  return value === null ? null : value - 1;
}
