/**
 * Owns clipping by global norm: scale = min(1, maxNorm / (norm + 1e-6)), the norm in double precision.
 * A norm that is not finite means the step must be skipped, so the scale is `null` and never 0.
 */
const NORM_EPSILON = 1e-6;

export interface GlobalNorm {
  readonly norm: number;
  /** Factor for every gradient; `null` = skip this update. */
  readonly scale: number | null;
}

export function clipGlobalNorm(gradients: Iterable<ArrayLike<number>>, maxNorm: number): GlobalNorm {
  let squares = 0;
  for (const gradient of gradients) {
    for (let i = 0; i < gradient.length; i++) squares += gradient[i]! * gradient[i]!;
  }
  const norm = Math.sqrt(squares);
  return { norm, scale: Number.isFinite(norm) ? Math.min(1, maxNorm / (norm + NORM_EPSILON)) : null };
}
