/**
 * Owns C(a, k) / C(n, k) without forming either: the chance that k draws out of n all fall within a given a.
 */
export function subsetShare(a: number, n: number, k: number): number {
  if (a < k) return 0;
  let share = 1;
  for (let i = 0; i < k; i++) share *= (a - i) / (n - i);
  return share;
}
