/**
 * Owns the unbiased estimators of solving a task with k attempts, from n attempts of which c were resolved
 * (Chen et al. 2021). `null` when k > n: it cannot be estimated from the data (C10).
 */
import { subsetShare } from "./combinations.js";

/** At least one of k resolved: 1 − C(n−c, k)/C(n, k). */
export function passAtK(n: number, c: number, k: number): number | null {
  return k > n ? null : 1 - subsetShare(n - c, n, k);
}

/** All of k resolved: C(c, k)/C(n, k). */
export function passHatK(n: number, c: number, k: number): number | null {
  return k > n ? null : subsetShare(c, n, k);
}
