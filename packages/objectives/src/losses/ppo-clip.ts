/**
 * PPO-clip on the token ratio: the policy loss of PPO, GRPO, Dr.GRPO and DAPO.
 *
 *   r_t = exp(lp_t − old_t),  L_t = clipRatio(r_t, A)              Schulman et al. 2017; see clip-ratio.ts
 *   dL_t/dlp_t = −A·r_t where unclipped, 0 where clipped
 */
import { type ClipBounds, clipRatio } from "./clip-ratio.js";
import { emptyTerms, logRatio, type TokenTerms } from "./token-terms.js";

/** `current` and `proximal` have the same length; `advantage` is the trial's. */
export function ppoClip(
  current: ArrayLike<number>,
  proximal: ArrayLike<number>,
  advantage: number,
  bounds: ClipBounds,
): TokenTerms {
  const terms = emptyTerms(current.length);
  for (let t = 0; t < current.length; t++) {
    const difference = logRatio(current[t]!, proximal[t]!);
    const ratio = Math.exp(difference.value);
    const surrogate = clipRatio(ratio, advantage, bounds);
    terms.loss[t] = surrogate.loss;
    terms.slope[t] = surrogate.slope * ratio * difference.slope;
    terms.clipped[t] = surrogate.isClipped ? 1 : 0;
  }
  return terms;
}
