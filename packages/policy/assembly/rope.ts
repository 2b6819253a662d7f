/**
 * Rotary positions, half-split convention: dimension i pairs with i + rotary/2; dimensions from `rotary` on stay.
 * The tables hold cos and sin of position * theta^(-2i/rotary), [position, rotary/2], computed in float64 outside.
 */
import { at } from "./lanes";

/** Rotates `heads` neighbouring vectors of each row in place; `direction` -1 undoes it (the backward pass). */
export function rotate(
  x: usize,
  ld: i32,
  positions: usize,
  cosines: usize,
  sines: usize,
  rows: i32,
  heads: i32,
  headDim: i32,
  rotary: i32,
  direction: f32,
): void {
  const half = rotary >> 1;
  const sign = f32x4.splat(direction);
  for (let r = 0; r < rows; r++) {
    const position = load<i32>(at(positions, r));
    const c = at(cosines, position * half);
    const s = at(sines, position * half);
    for (let h = 0; h < heads; h++) {
      const low = at(x, r * ld + h * headDim);
      const high = at(low, half);
      let i = 0;
      for (; i + 4 <= half; i += 4) {
        const cos = v128.load(at(c, i));
        const sin = f32x4.mul(v128.load(at(s, i)), sign);
        const a = v128.load(at(low, i));
        const b = v128.load(at(high, i));
        v128.store(at(low, i), f32x4.sub(f32x4.mul(a, cos), f32x4.mul(b, sin)));
        v128.store(at(high, i), f32x4.add(f32x4.mul(b, cos), f32x4.mul(a, sin)));
      }
      for (; i < half; i++) {
        const cos = load<f32>(at(c, i));
        const sin = load<f32>(at(s, i)) * direction;
        const a = load<f32>(at(low, i));
        const b = load<f32>(at(high, i));
        store<f32>(at(low, i), a * cos - b * sin);
        store<f32>(at(high, i), b * cos + a * sin);
      }
    }
  }
}
