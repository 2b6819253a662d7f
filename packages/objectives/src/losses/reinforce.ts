/**
 * REINFORCE: the plain policy gradient, the policy loss of RLOO when one update is taken per batch.
 *
 *   L_t = −A · lp_t        dL_t/dlp_t = −A                    Williams 1992
 */
import { emptyTerms, type TokenTerms } from "./token-terms.js";

export function reinforce(current: ArrayLike<number>, advantage: number): TokenTerms {
  const terms = emptyTerms(current.length);
  for (let t = 0; t < current.length; t++) {
    terms.loss[t] = -advantage * current[t]!;
    terms.slope[t] = -advantage;
  }
  return terms;
}
