/** AdamW over flat runs of parameters, and the norm that clips them. Lengths are multiples of 4. */
import { at, mulAdd } from "./lanes";

/** Sum of squares of x[n], in float64. */
export function sumSquares(x: usize, n: i32): f64 {
  let total = f64x2.splat(0);
  for (let i = 0; i < n; i += 4) {
    const v = v128.load(at(x, i));
    const low = f64x2.promote_low_f32x4(v);
    const high = f64x2.promote_low_f32x4(v128.shuffle<f64>(v, v, 1, 1));
    total = f64x2.add(total, f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high)));
  }
  return f64x2.extract_lane(total, 0) + f64x2.extract_lane(total, 1);
}

/**
 * Torch's order: p *= keep (1 - lr * decay);  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 * p -= rate * m / (sqrt(v) * rootCorrection + eps), with rate = lr / (1 - b1^t) and
 * rootCorrection = 1 / sqrt(1 - b2^t), both computed in float64 by the caller. g is scaled by `clip` first.
 */
export function adamW(
  p: usize,
  g: usize,
  m: usize,
  v: usize,
  n: i32,
  clip: f32,
  keep: f32,
  beta1: f32,
  oneMinusBeta1: f32,
  beta2: f32,
  oneMinusBeta2: f32,
  rate: f32,
  rootCorrection: f32,
  eps: f32,
): void {
  for (let i = 0; i < n; i += 4) {
    const grad = f32x4.mul(v128.load(at(g, i)), f32x4.splat(clip));
    const first = mulAdd(
      f32x4.mul(v128.load(at(m, i)), f32x4.splat(beta1)),
      grad,
      f32x4.splat(oneMinusBeta1),
    );
    const second = mulAdd(
      f32x4.mul(v128.load(at(v, i)), f32x4.splat(beta2)),
      f32x4.mul(grad, grad),
      f32x4.splat(oneMinusBeta2),
    );
    const root = f32x4.add(f32x4.mul(f32x4.sqrt(second), f32x4.splat(rootCorrection)), f32x4.splat(eps));
    const update = f32x4.mul(f32x4.splat(rate), f32x4.div(first, root));
    v128.store(at(m, i), first);
    v128.store(at(v, i), second);
    v128.store(at(p, i), f32x4.sub(f32x4.mul(v128.load(at(p, i)), f32x4.splat(keep)), update));
  }
}
