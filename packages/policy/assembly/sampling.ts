/** Choosing a token from one row of scaled logits whose log-sum-exp is known. */
import { at, exp4 } from "./lanes";

/** The first index whose cumulative probability exceeds u, walking upwards; u in (0, 1). */
export function sampleRow(logits: usize, ld: i32, vocab: i32, lse: f32, u: f64): i32 {
  const shift = f32x4.splat(lse);
  let cumulative: f64 = 0;
  let last = 0;
  for (let i = 0; i < ld; i += 4) {
    const p = exp4(f32x4.sub(v128.load(at(logits, i)), shift));
    for (let lane = 0; lane < 4; lane++) {
      const mass =
        lane == 0
          ? f32x4.extract_lane(p, 0)
          : lane == 1
            ? f32x4.extract_lane(p, 1)
            : lane == 2
              ? f32x4.extract_lane(p, 2)
              : f32x4.extract_lane(p, 3);
      if (mass == 0 || i + lane >= vocab) continue;
      cumulative += <f64>mass;
      last = i + lane;
      if (cumulative > u) return last;
    }
  }
  // Rounding can leave the sum just below 1: the mass belongs to the last token that has any.
  return last;
}

/** The index of the highest logit; the lowest index among equals. */
export function argmaxRow(logits: usize, vocab: i32): i32 {
  let best = 0;
  for (let i = 1; i < vocab; i++) {
    if (load<f32>(at(logits, i)) > load<f32>(at(logits, best))) best = i;
  }
  return best;
}
