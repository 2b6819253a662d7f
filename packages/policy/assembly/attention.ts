/**
 * Causal attention of single query rows over paged keys and values.
 *
 * A page holds 16 positions of one layer: keys as [kvHead][dim][16], so that scores of neighbouring positions are
 * neighbouring lanes, then values as [kvHead][16][dim]. A row names its pages through a table of page numbers and
 * says how many positions it may see. Training and decoding use the same kernel, hence the same bits (R1).
 */
import { at, exp4, maxLanes, mulAdd, sumLanes } from "./lanes";

export const PAGE: i32 = 16;

/** Writes the keys and values of each row to `slots[row]` = page * 16 + position in the page. */
export function storeKeyValue(
  k: usize, v: usize, ld: i32, rows: i32, kvHeads: i32, headDim: i32, pages: usize, slots: usize,
): void {
  const width = kvHeads * headDim;
  for (let r = 0; r < rows; r++) {
    const slot = load<i32>(at(slots, r));
    const page = at(pages, (slot >> 4) * 2 * width * PAGE);
    const offset = slot & 15;
    const keys = at(page, offset);
    for (let i = 0; i < width; i++) store<f32>(at(keys, i * PAGE), load<f32>(at(k, r * ld + i)));
    const values = at(page, width * PAGE + offset * headDim);
    for (let h = 0; h < kvHeads; h++) {
      memory.copy(at(values, h * PAGE * headDim), at(v, r * ld + h * headDim), <usize>headDim << 2);
    }
  }
}

/** scores[0 .. 16 ceil(n/16)) = scale * (q . key); positions from n on get -Infinity. Returns the highest score. */
export function scoreKeys(
  q: usize, headDim: i32, keysInPage: i32, pageFloats: i32, pages: usize, table: usize, n: i32, scale: f32, scores: usize,
): f32 {
  let highest = f32x4.splat(-Infinity);
  const factor = f32x4.splat(scale);
  for (let j = 0; j < n; j += PAGE) {
    let keys = at(pages, load<i32>(at(table, j >> 4)) * pageFloats + keysInPage);
    let s0 = f32x4.splat(0);
    let s1 = f32x4.splat(0);
    let s2 = f32x4.splat(0);
    let s3 = f32x4.splat(0);
    for (let d = 0; d < headDim; d++) {
      const x = v128.load32_splat(at(q, d));
      s0 = mulAdd(s0, x, v128.load(keys));
      s1 = mulAdd(s1, x, v128.load(keys, 16));
      s2 = mulAdd(s2, x, v128.load(keys, 32));
      s3 = mulAdd(s3, x, v128.load(keys, 48));
      keys += 64;
    }
    const to = at(scores, j);
    v128.store(to, f32x4.mul(s0, factor));
    v128.store(to, f32x4.mul(s1, factor), 16);
    v128.store(to, f32x4.mul(s2, factor), 32);
    v128.store(to, f32x4.mul(s3, factor), 48);
    for (let i = n - j; i < PAGE; i++) store<f32>(at(to, i), -Infinity);
    highest = f32x4.max(highest, f32x4.max(f32x4.max(v128.load(to), v128.load(to, 16)), f32x4.max(v128.load(to, 32), v128.load(to, 48))));
  }
  return maxLanes(highest);
}

/** scores = exp(scores - top) in place over whole pages; returns their sum. */
// @ts-ignore: decorator
@inline
function exponentiate(scores: usize, n: i32, top: f32): f32 {
  const shift = f32x4.splat(top);
  let sum = f32x4.splat(0);
  const end = (n + PAGE - 1) & ~15;
  for (let j = 0; j < end; j += 4) {
    const e = exp4(f32x4.sub(v128.load(at(scores, j)), shift));
    v128.store(at(scores, j), e);
    sum = f32x4.add(sum, e);
  }
  return sumLanes(sum);
}

/** out[0..3] of dimension `d` on: scale * sum over positions of weight * value. */
// @ts-ignore: decorator
@inline
function mixValues(
  weights: usize, valuesInPage: i32, pageFloats: i32, pages: usize, table: usize, n: i32, headDim: i32, d: i32, scale: v128, out: usize,
): void {
  let sum = f32x4.splat(0);
  for (let j = 0; j < n; j += PAGE) {
    let value = at(pages, load<i32>(at(table, j >> 4)) * pageFloats + valuesInPage + d);
    const end = min(n, j + PAGE);
    for (let i = j; i < end; i++) {
      sum = mulAdd(sum, v128.load32_splat(at(weights, i)), v128.load(value));
      value = at(value, headDim);
    }
  }
  v128.store(at(out, d), f32x4.mul(sum, scale));
}

/**
 * out[row, head] = softmax(q . K / sqrt(dim)) V over the first `counts[row]` positions of `tables[row]` (an address).
 * `statistics[row, head]` receives the highest score and the reciprocal of the sum, for the backward pass.
 * `scores` is scratch for the longest row, rounded up to whole pages. Head h reads kv head h / (heads / kvHeads).
 */
export function attend(
  q: usize, ldq: i32, out: usize, ldo: i32, rows: i32, heads: i32, kvHeads: i32, headDim: i32, scale: f32,
  pages: usize, tables: usize, counts: usize, scores: usize, statistics: usize,
): void {
  const group = heads / kvHeads;
  const width = kvHeads * headDim * PAGE;
  for (let r = 0; r < rows; r++) {
    const table = <usize>load<i32>(at(tables, r));
    const n = load<i32>(at(counts, r));
    for (let h = 0; h < heads; h++) {
      const inPage = (h / group) * headDim * PAGE;
      const top = scoreKeys(at(q, r * ldq + h * headDim), headDim, inPage, 2 * width, pages, table, n, scale, scores);
      const inverse: f32 = 1 / exponentiate(scores, n, top);
      const to = at(out, r * ldo + h * headDim);
      const normalise = f32x4.splat(inverse);
      for (let d = 0; d < headDim; d += 4) {
        mixValues(scores, width + inPage, 2 * width, pages, table, n, headDim, d, normalise, to);
      }
      store<f32>(at(statistics, (r * heads + h) * 2), top);
      store<f32>(at(statistics, (r * heads + h) * 2 + 1), inverse);
    }
  }
}
