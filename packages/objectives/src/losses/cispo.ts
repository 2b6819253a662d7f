/**
 * CISPO: REINFORCE with a clipped, stop-gradient importance weight (MiniMax-M1, 2025, eq. 4).
 *
 *   L_t = −sg(clip(r_t, lower, 1 + high)) · A · lp_t        dL_t/dlp_t = −clip(r_t)·A, never zeroed
 *
 * The canonical form has no lower clip: `low` ≥ 1 (the default 1) switches it off. `high` is relative
 * (1 + high), unlike implementations in which the same name is the absolute cap.
 */
import { clamp } from "../statistics.js";
import { emptyTerms, logRatio, type TokenTerms } from "./token-terms.js";

export interface CispoBounds {
  readonly low?: number;
  readonly high: number;
}

export function cispo(
  current: ArrayLike<number>,
  proximal: ArrayLike<number>,
  advantage: number,
  bounds: CispoBounds,
): TokenTerms {
  const terms = emptyTerms(current.length);
  const floor = Math.max(0, 1 - (bounds.low ?? 1));
  for (let t = 0; t < current.length; t++) {
    const ratio = Math.exp(logRatio(current[t]!, proximal[t]!).value);
    const weight = clamp(ratio, floor, 1 + bounds.high);
    terms.loss[t] = -weight * advantage * current[t]!;
    terms.slope[t] = -weight * advantage;
    terms.clipped[t] = weight === ratio ? 0 : 1;
  }
  return terms;
}
