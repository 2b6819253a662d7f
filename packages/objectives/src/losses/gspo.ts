/**
 * GSPO: one importance ratio per trial, the geometric mean of its token ratios (Zheng et al. 2025, eq. 7).
 *
 *   log s = Σ M_t (lp_t − old_t) / max(Σ M_t, 1)     over ALL trained tokens of the trial, however many
 *                                                     sequences its conversation tree was cut into
 *   L_t   = clipRatio(s, A)                           with log s_t = lp_t − sg(lp_t) + sg(log s)
 *   dL_t/dlp_t = −A·s where unclipped, 0 where clipped
 *
 * Averaged with seq-mean-token-mean this token form has exactly the gradient of the sequence form,
 * −A·s / (|y|·B) per token; averaged any other way it is a different objective, so the objective fixes it.
 */
import { type ClipBounds, clipRatio } from "./clip-ratio.js";
import { emptyTerms, type TokenTerms } from "./token-terms.js";

/** Above this e^log s overflows any useful step; the same cap is used by the published implementations. */
const MAX_LOG_SEQUENCE_RATIO = 10;

/** One sequence of a trial: log-probabilities and the mask of its trained tokens, all the same length. */
export interface RatioRow {
  readonly current: ArrayLike<number>;
  readonly proximal: ArrayLike<number>;
  readonly mask: ArrayLike<number>;
}

/** log s of a trial from all its sequences. 0 when nothing is trained. */
export function logSequenceRatio(rows: Iterable<RatioRow>): number {
  let total = 0;
  let count = 0;
  for (const row of rows) {
    for (let t = 0; t < row.mask.length; t++) {
      if (row.mask[t] === 0) continue;
      total += row.current[t]! - row.proximal[t]!;
      count += 1;
    }
  }
  return total / Math.max(count, 1);
}

/** Token terms of one sequence of `length` tokens, given the log-ratio of its whole trial. */
export function gspo(
  length: number,
  logRatioOfTrial: number,
  advantage: number,
  bounds: ClipBounds,
): TokenTerms {
  const terms = emptyTerms(length);
  const ratio = Math.exp(Math.min(logRatioOfTrial, MAX_LOG_SEQUENCE_RATIO));
  const surrogate = clipRatio(ratio, advantage, bounds);
  const isFlat = logRatioOfTrial > MAX_LOG_SEQUENCE_RATIO;
  terms.loss.fill(surrogate.loss);
  terms.slope.fill(isFlat ? 0 : surrogate.slope * ratio);
  terms.clipped.fill(surrogate.isClipped ? 1 : 0);
  return terms;
}
