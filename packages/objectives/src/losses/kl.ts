/**
 * Owns the per-token estimators of KL(policy ‖ reference) and their derivatives (Schulman 2020, "Approximating
 * KL divergence"). With x = lp − ref:
 *
 *   k1 = x               dk1/dlp = 1
 *   k2 = x²/2            dk2/dlp = x
 *   k3 = e^(−x) + x − 1  dk3/dlp = 1 − e^(−x)      ≥ 0, low variance; the default
 *
 * x is clamped to ±20 and k3 to ≤ 10; where a clamp is active the derivative is 0.
 */
import { logRatio } from "./token-terms.js";

export type KlEstimator = "k1" | "k2" | "k3";

const MAX_K3 = 10;

export interface KlTerm {
  readonly value: number;
  /** d value / d lp. */
  readonly slope: number;
}

export function klTerm(estimator: KlEstimator, current: number, reference: number): KlTerm {
  const x = logRatio(current, reference);
  switch (estimator) {
    case "k1":
      return { value: x.value, slope: x.slope };
    case "k2":
      return { value: (x.value * x.value) / 2, slope: x.value * x.slope };
    case "k3": {
      const value = Math.exp(-x.value) + x.value - 1;
      if (value > MAX_K3) return { value: MAX_K3, slope: 0 };
      return { value: Math.max(value, 0), slope: (1 - Math.exp(-x.value)) * x.slope };
    }
  }
}
