/**
 * Owns the Wilson score interval of one binomial proportion (Wilson 1927), a deterministic cross-check for the
 * bootstrap. It assumes independent attempts; repeated attempts at one task are not (see solve-rate-rise.ts).
 */
export const Z_95 = 1.959963984540054;

/** [low, high], or `null` for n = 0. */
export function wilsonInterval(successes: number, n: number, z = Z_95): readonly [number, number] | null {
  if (n === 0) return null;
  const p = successes / n;
  const spread = 1 + (z * z) / n;
  const centre = (p + (z * z) / (2 * n)) / spread;
  const half = (z / spread) * Math.sqrt((p * (1 - p)) / n + (z * z) / (4 * n * n));
  return [centre - half, centre + half];
}
