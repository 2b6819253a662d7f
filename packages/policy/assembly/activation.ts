/** SwiGLU: act = silu(gate) * up, with gate and up side by side in one row of 2n floats. */
import { at, exp4, mulAdd } from "./lanes";

// @ts-ignore: decorator
@inline
function sigmoid(x: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}

export function swiGlu(gateUp: usize, act: usize, rows: i32, n: i32): void {
  for (let r = 0; r < rows; r++) {
    const gate = at(gateUp, r * 2 * n);
    const up = at(gate, n);
    const out = at(act, r * n);
    for (let i = 0; i < n; i += 4) {
      const g = v128.load(at(gate, i));
      v128.store(at(out, i), f32x4.mul(f32x4.mul(g, sigmoid(g)), v128.load(at(up, i))));
    }
  }
}

/** From dAct and the forward gateUp, overwrites gateUp with its gradient: silu'(g) = s + g s (1 - s). */
export function swiGluBackward(gateUp: usize, dAct: usize, rows: i32, n: i32): void {
  const one = f32x4.splat(1);
  for (let r = 0; r < rows; r++) {
    const gate = at(gateUp, r * 2 * n);
    const up = at(gate, n);
    const d = at(dAct, r * n);
    for (let i = 0; i < n; i += 4) {
      const g = v128.load(at(gate, i));
      const u = v128.load(at(up, i));
      const dy = v128.load(at(d, i));
      const s = sigmoid(g);
      const silu = f32x4.mul(g, s);
      v128.store(at(gate, i), f32x4.mul(f32x4.mul(dy, u), mulAdd(s, silu, f32x4.sub(one, s))));
      v128.store(at(up, i), f32x4.mul(dy, silu));
    }
  }
}
