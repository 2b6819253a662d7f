/**
 * Owns the reference AdamW update in plain doubles (Loshchilov & Hutter 2019, torch's order of operations),
 * against which the policy's float32 kernels are checked. Does not train anything by itself.
 *
 *   p ← p·(1 − lr·wd);  m ← β1·m + (1−β1)·g;  v ← β2·v + (1−β2)·g²
 *   p ← p − lr · (m / (1−β1^t)) / (√(v / (1−β2^t)) + eps)
 */
export interface AdamWOptions {
  readonly learningRate: number;
  readonly betas: readonly [number, number];
  readonly epsilon: number;
  readonly weightDecay: number;
}

export interface AdamWState {
  readonly m: Float64Array;
  readonly v: Float64Array;
  /** Updates made so far. */
  readonly t: number;
}

export function adamwState(size: number): AdamWState {
  return { m: new Float64Array(size), v: new Float64Array(size), t: 0 };
}

/** One update, in place on `parameters`; returns the new state (its arrays are the old ones, updated). */
export function adamwUpdate(
  parameters: Float64Array,
  gradients: ArrayLike<number>,
  state: AdamWState,
  options: AdamWOptions,
): AdamWState {
  const [beta1, beta2] = options.betas;
  const t = state.t + 1;
  const { m, v } = state;
  for (let i = 0; i < parameters.length; i++) {
    const g = gradients[i]!;
    m[i] = beta1 * m[i]! + (1 - beta1) * g;
    v[i] = beta2 * v[i]! + (1 - beta2) * g * g;
    const corrected = Math.sqrt(v[i]! / (1 - beta2 ** t)) + options.epsilon;
    const decayed = parameters[i]! * (1 - options.learningRate * options.weightDecay);
    parameters[i] = decayed - (options.learningRate * m[i]!) / (1 - beta1 ** t) / corrected;
  }
  return { m, v, t };
}
