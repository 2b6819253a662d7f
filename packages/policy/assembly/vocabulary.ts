/**
 * The softmax over the vocabulary, per row of logits z (temperature t, y = z / t):
 *   logp = y[target] - lse,   entropy = lse - sum p y.
 * Rows have ld >= vocab floats, a multiple of 4; the padding is set to -Infinity here, so it weighs nothing.
 */
import { at, exp4, maxLanes, mulAdd, sumLanes } from "./lanes";

/** Terms summed in float32 before they go into a float64 total: large vocabularies keep their digits. */
const RUN: i32 = 256;

/** Scales the logits in place by 1/t and writes one float per row to logp, entropy and lse. A target < 0 gives logp NaN. */
export function tokenStatistics(
  logits: usize,
  ld: i32,
  vocab: i32,
  rows: i32,
  targets: usize,
  inverseTemperature: f32,
  logp: usize,
  entropy: usize,
  lse: usize,
): void {
  const scale = f32x4.splat(inverseTemperature);
  for (let r = 0; r < rows; r++) {
    const row = at(logits, r * ld);
    let highest = f32x4.splat(-f32.MAX_VALUE);
    for (let i = vocab; i < ld; i++) store<f32>(at(row, i), -Infinity);
    for (let i = 0; i < ld; i += 4) {
      const y = f32x4.mul(v128.load(at(row, i)), scale);
      v128.store(at(row, i), y);
      highest = f32x4.max(highest, y);
    }
    const top = maxLanes(highest);
    const shift = f32x4.splat(top);
    let total: f64 = 0;
    let weighted: f64 = 0;
    for (let start = 0; start < ld; start += RUN) {
      let sum = f32x4.splat(0);
      let sumY = f32x4.splat(0);
      for (let i = start; i < min(start + RUN, ld); i += 4) {
        // The floor keeps 0 * -Infinity out of the padded lanes; exp is 0 there either way.
        const y = f32x4.max(f32x4.sub(v128.load(at(row, i)), shift), f32x4.splat(-1000));
        const e = exp4(y);
        sum = f32x4.add(sum, e);
        sumY = mulAdd(sumY, e, y);
      }
      total += <f64>sumLanes(sum);
      weighted += <f64>sumLanes(sumY);
    }
    const logTotal = Math.log(total);
    const target = load<i32>(at(targets, r));
    const above = target < 0 ? NaN : <f64>(load<f32>(at(row, target)) - top) - logTotal;
    store<f32>(at(logp, r), <f32>above);
    store<f32>(at(entropy, r), <f32>(logTotal - weighted / total));
    store<f32>(at(lse, r), <f32>(<f64>top + logTotal));
  }
}

/**
 * Overwrites the scaled logits y with d loss / d z:
 *   (dLogp * (1[i = target] - p_i) - dEntropy * p_i * (log p_i + entropy)) / t.
 */
export function logitsBackward(
  logits: usize,
  ld: i32,
  rows: i32,
  targets: usize,
  inverseTemperature: f32,
  dLogp: usize,
  dEntropy: usize,
  entropy: usize,
  lse: usize,
): void {
  for (let r = 0; r < rows; r++) {
    const row = at(logits, r * ld);
    const up = load<f32>(at(dLogp, r)) * inverseTemperature;
    const dH = f32x4.splat(load<f32>(at(dEntropy, r)) * inverseTemperature);
    const shift = f32x4.splat(load<f32>(at(lse, r)));
    const base = f32x4.splat(load<f32>(at(entropy, r)));
    const dUp = f32x4.splat(up);
    for (let i = 0; i < ld; i += 4) {
      const logProbability = f32x4.max(f32x4.sub(v128.load(at(row, i)), shift), f32x4.splat(-1000));
      const slope = mulAdd(dUp, dH, f32x4.add(logProbability, base));
      v128.store(at(row, i), f32x4.neg(f32x4.mul(exp4(logProbability), slope)));
    }
    const target = at(row, load<i32>(at(targets, r)));
    store<f32>(target, load<f32>(target) + up);
  }
}
