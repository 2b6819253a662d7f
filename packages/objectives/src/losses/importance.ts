/**
 * Owns the correction for sampling with an engine whose log-probabilities differ from the trainer's, or with
 * older weights: a stop-gradient weight that multiplies each token's loss.
 * Does not own the ratio of the policy loss itself, nor denominators: they keep every token, because a
 * denominator that shrank with the rejected tokens would re-weight the survivors.
 *
 *   w = exp(proximal − behaviour), the log clamped to ±20
 *   truncate  min(w, cap)                          truncated importance sampling (TIS, cap 2); with a cap of 5
 *                                                  the behaviour weight of AReaL's decoupled PPO (Fu et al. 2025)
 *   mask      w if low ≤ w ≤ high else 0           IcePop; [0, cap] is decoupled PPO's masking form
 *
 * Levels: `token` uses each token's w; `product` one weight per trial, the product over its trained tokens;
 * `geometric` their geometric mean. A token without a recorded log-probability (NaN, C10) has no weight: it
 * gets 0, is counted, and does not enter a trial-level weight.
 */
import { clamp } from "../statistics.js";
import { MAX_LOG_RATIO } from "./token-terms.js";

export type ImportanceLevel = "token" | "product" | "geometric";

export type ImportanceCorrection =
  | { readonly kind: "none" }
  | { readonly kind: "truncate"; readonly level: ImportanceLevel; readonly cap: number }
  | { readonly kind: "mask"; readonly level: ImportanceLevel; readonly low: number; readonly high: number };

/** One sequence: log-probabilities under the proximal policy and as recorded at sampling. */
export interface BehaviourRow {
  readonly proximal: ArrayLike<number>;
  /** NaN where the engine gave none. */
  readonly behaviour: ArrayLike<number>;
  readonly mask: ArrayLike<number>;
}

export interface ImportanceWeights {
  /** One array per row, one weight per position; 1 at untrained positions. */
  readonly rows: readonly Float64Array[];
  /** Trained tokens that had no recorded log-probability. */
  readonly nMissing: number;
}

/** Weights of all sequences of ONE trial. */
export function importanceWeights(
  trial: readonly BehaviourRow[],
  correction: ImportanceCorrection,
): ImportanceWeights {
  if (correction.kind === "none") {
    return { rows: trial.map((row) => new Float64Array(row.mask.length).fill(1)), nMissing: 0 };
  }
  const shared = correction.level === "token" ? undefined : trialWeight(trial, correction.level);
  let nMissing = 0;
  const rows = trial.map((row) => {
    const weights = new Float64Array(row.mask.length).fill(1);
    for (let t = 0; t < weights.length; t++) {
      if (row.mask[t] === 0) continue;
      const difference = row.proximal[t]! - row.behaviour[t]!;
      if (Number.isNaN(difference)) nMissing += 1;
      weights[t] = Number.isNaN(difference) ? 0 : bound(shared ?? weightOf(difference), correction);
    }
    return weights;
  });
  return { rows, nMissing };
}

/** The unbounded weight of a whole trial: product or geometric mean of its tokens' weights. */
export function trialWeight(trial: readonly BehaviourRow[], level: "product" | "geometric"): number {
  let total = 0;
  let count = 0;
  for (const row of trial) {
    for (let t = 0; t < row.mask.length; t++) {
      const difference = row.proximal[t]! - row.behaviour[t]!;
      if (row.mask[t] === 0 || Number.isNaN(difference)) continue;
      total += difference;
      count += 1;
    }
  }
  return weightOf(level === "product" ? total : total / Math.max(count, 1));
}

/** exp of a log-weight, clamped. */
export function weightOf(logWeight: number): number {
  return Math.exp(clamp(logWeight, -MAX_LOG_RATIO, MAX_LOG_RATIO));
}

function bound(weight: number, correction: Exclude<ImportanceCorrection, { kind: "none" }>): number {
  if (correction.kind === "truncate") return Math.min(weight, correction.cap);
  return weight >= correction.low && weight <= correction.high ? weight : 0;
}

/**
 * Effective sample size as a fraction: (Σw)² / (n·Σw²), in (0, 1]; `null` for no weights or all-zero weights.
 * On truncated weights it looks better than the raw one: say which was measured.
 */
export function effectiveSampleFraction(weights: ArrayLike<number>): number | null {
  let total = 0;
  let squares = 0;
  for (let i = 0; i < weights.length; i++) {
    total += weights[i]!;
    squares += weights[i]! ** 2;
  }
  return squares === 0 ? null : (total * total) / (weights.length * squares);
}
