/**
 * Owns the shape every policy loss returns and the log-ratio they share.
 * Does not own masks or averaging: terms exist at every position, aggregation decides what counts.
 *
 * A loss is minimised. `slope[t]` is dL_t/dlp_t, where lp_t is the log-probability of the sampled token under
 * the weights being trained; everything marked stop-gradient is a constant in it.
 */
import { clamp } from "../statistics.js";

export interface TokenTerms {
  /** Per-token loss L_t. */
  readonly loss: Float64Array;
  /** Per-token derivative of L_t with respect to the current log-probability of that token. */
  readonly slope: Float64Array;
  /** 1 where the clip (or dual clip, or cap) is the active branch. */
  readonly clipped: Uint8Array;
}

/** Beyond this the exponential is meaningless noise and its gradient would be too; it is held flat. */
export const MAX_LOG_RATIO = 20;

export interface LogRatio {
  /** lp − old, clamped to ±MAX_LOG_RATIO. */
  readonly value: number;
  /** d value / d lp: 1 inside the clamp, 0 outside. */
  readonly slope: 0 | 1;
}

export function logRatio(current: number, old: number): LogRatio {
  const difference = current - old;
  return {
    value: clamp(difference, -MAX_LOG_RATIO, MAX_LOG_RATIO),
    slope: Math.abs(difference) <= MAX_LOG_RATIO ? 1 : 0,
  };
}

export function emptyTerms(length: number): TokenTerms {
  return { loss: new Float64Array(length), slope: new Float64Array(length), clipped: new Uint8Array(length) };
}
