/**
 * RMSNorm y = (x * rsqrt(mean(x^2) + eps)) * w over vectors of n floats. A row of a matrix may hold several such
 * vectors side by side (`groups`: the heads of a q or k projection).
 */
import { at, mulAdd, sumLanes } from "./lanes";

/** Writes y and, for the backward pass, the reciprocal root of each vector to `inverse[rows * groups]`. */
export function rmsNorm(
  x: usize,
  ldx: i32,
  w: usize,
  y: usize,
  ldy: i32,
  rows: i32,
  groups: i32,
  n: i32,
  eps: f32,
  inverse: usize,
): void {
  for (let r = 0; r < rows; r++) {
    for (let g = 0; g < groups; g++) {
      const from = at(x, r * ldx + g * n);
      const to = at(y, r * ldy + g * n);
      let squares = f32x4.splat(0);
      for (let i = 0; i < n; i += 4) {
        const v = v128.load(at(from, i));
        squares = mulAdd(squares, v, v);
      }
      const scale: f32 = 1 / sqrt<f32>(sumLanes(squares) / <f32>n + eps);
      store<f32>(at(inverse, r * groups + g), scale);
      const s = f32x4.splat(scale);
      for (let i = 0; i < n; i += 4) {
        v128.store(at(to, i), f32x4.mul(f32x4.mul(v128.load(at(from, i)), s), v128.load(at(w, i))));
      }
    }
  }
}

/**
 * With s the stored reciprocal root and u = dy * w:  dw += dy * x * s,  dx = s * (u - x * s^2 * mean(u * x)).
 * dx is added to when `accumulate`, else overwritten; it may be the same matrix as dy.
 */
export function rmsNormBackward(
  x: usize,
  ldx: i32,
  w: usize,
  inverse: usize,
  dy: usize,
  lddy: i32,
  dx: usize,
  lddx: i32,
  dw: usize,
  rows: i32,
  groups: i32,
  n: i32,
  accumulate: bool,
): void {
  for (let r = 0; r < rows; r++) {
    for (let g = 0; g < groups; g++) {
      const xs = at(x, r * ldx + g * n);
      const dys = at(dy, r * lddy + g * n);
      const dxs = at(dx, r * lddx + g * n);
      const scale = load<f32>(at(inverse, r * groups + g));
      const s = f32x4.splat(scale);
      let dot = f32x4.splat(0);
      for (let i = 0; i < n; i += 4) {
        const dyx = f32x4.mul(v128.load(at(dys, i)), v128.load(at(xs, i)));
        v128.store(at(dw, i), mulAdd(v128.load(at(dw, i)), dyx, s));
        dot = mulAdd(dot, dyx, v128.load(at(w, i)));
      }
      const pull = f32x4.splat((scale * scale * sumLanes(dot)) / <f32>n);
      for (let i = 0; i < n; i += 4) {
        const u = f32x4.mul(v128.load(at(dys, i)), v128.load(at(w, i)));
        const d = f32x4.mul(s, f32x4.sub(u, f32x4.mul(v128.load(at(xs, i)), pull)));
        v128.store(at(dxs, i), accumulate ? f32x4.add(v128.load(at(dxs, i)), d) : d);
      }
    }
  }
}
