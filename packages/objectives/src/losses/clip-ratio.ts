/**
 * Owns the clipped surrogate of a ratio r and an advantage A, shared by the token and the sequence forms.
 *
 *   L = max(−A·r, −A·clip(r, 1−low, 1+high))                       Schulman et al. 2017, eq. 7
 *   and with a dual clip c, for A < 0 only:  L = min(L, −A·c)      Ye et al. 2020, eq. 4
 *
 * Asymmetric bounds are DAPO's "clip-higher" (Yu et al. 2025). On a tie the unclipped branch is active, so a
 * ratio of exactly 1 carries its gradient.
 */
import { clamp } from "../statistics.js";

export interface ClipBounds {
  /** Lower clip: ratios below 1 − low stop counting for A < 0. */
  readonly low: number;
  /** Upper clip: ratios above 1 + high stop counting for A > 0. */
  readonly high: number;
  /** Dual clip c > 1 for negative advantages; absent = off. */
  readonly dual?: number;
}

export interface ClippedRatio {
  readonly loss: number;
  /** dL/dr. */
  readonly slope: number;
  readonly isClipped: boolean;
}

export function clipRatio(ratio: number, advantage: number, bounds: ClipBounds): ClippedRatio {
  const plain = -advantage * ratio;
  const held = -advantage * clamp(ratio, 1 - bounds.low, 1 + bounds.high);
  const pessimistic = held > plain;
  const loss = pessimistic ? held : plain;
  if (bounds.dual !== undefined && advantage < 0 && -advantage * bounds.dual < loss) {
    return { loss: -advantage * bounds.dual, slope: 0, isClipped: true };
  }
  return { loss, slope: pessimistic ? 0 : -advantage, isClipped: pessimistic };
}
