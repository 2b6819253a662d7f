/**
 * Backward pass of attention for one whole sequence. Probabilities are computed again from the stored maximum and
 * reciprocal sum instead of being kept: memory stays linear in the length.
 *
 * For query i and position j <= i:  p = exp(s - max) / sum,  ds = p * (dO . v_j - dO . O) * scale;
 *   dq_i += ds k_j,  dk_j += ds q_i,  dv_j += p dO_i.
 */
import { PAGE, scoreKeys } from "./attention";
import { at, exp4, mulAdd, sumLanes } from "./lanes";

/** valuesT = values as [page][dim][16], the layout of keys, for the products dO . v_j. */
function transposeValues(pages: usize, table: usize, n: i32, headDim: i32, pageFloats: i32, inPage: i32, out: usize): void {
  for (let j = 0; j < n; j++) {
    const from = at(pages, load<i32>(at(table, j >> 4)) * pageFloats + inPage + (j & 15) * headDim);
    const to = at(out, (j >> 4) * headDim * PAGE + (j & 15));
    for (let d = 0; d < headDim; d++) store<f32>(at(to, d * PAGE), load<f32>(at(from, d)));
  }
}

/** weights <- p, slopes <- ds, over whole pages (both are 0 past the last visible position). */
// @ts-ignore: decorator
@inline
function scoreGradient(weights: usize, slopes: usize, n: i32, top: f32, inverse: f32, delta: f32, scale: f32): void {
  for (let j = 0; j < n; j += 4) {
    const p = f32x4.mul(exp4(f32x4.sub(v128.load(at(weights, j)), f32x4.splat(top))), f32x4.splat(inverse));
    const d = f32x4.sub(v128.load(at(slopes, j)), f32x4.splat(delta));
    v128.store(at(weights, j), p);
    v128.store(at(slopes, j), f32x4.mul(f32x4.mul(p, d), f32x4.splat(scale)));
  }
}

/** dq = sum ds_j k_j;  dk_j += ds_j q;  dv_j += p_j dO, for four dimensions. */
// @ts-ignore: decorator
@inline
function spread(
  weights: usize, slopes: usize, n: i32, q: usize, dOut: usize, k: usize, dk: usize, dv: usize, ld: i32, dq: usize,
): void {
  const query = v128.load(q);
  const up = v128.load(dOut);
  let sum = f32x4.splat(0);
  const stride = <usize>ld << 2;
  for (let j = 0; j < n; j++) {
    const ds = v128.load32_splat(at(slopes, j));
    sum = mulAdd(sum, ds, v128.load(k));
    v128.store(dk, mulAdd(v128.load(dk), ds, query));
    v128.store(dv, mulAdd(v128.load(dv), v128.load32_splat(at(weights, j)), up));
    k += stride;
    dk += stride;
    dv += stride;
  }
  v128.store(dq, sum);
}

/**
 * `spread` for queries i (even) and i + 1 together, which halves the traffic of dk and dv. Both lie in one page, so
 * the first query's weight and slope of position i + 1 are there, and 0. The order of sums is that of two calls.
 */
// @ts-ignore: decorator
@inline
function spreadPair(
  weights: usize, padded: i32, n: i32, q: usize, dOut: usize, ldo: i32, k: usize, dk: usize, dv: usize, ld: i32, dq: usize,
): void {
  const stride = <usize>ld << 2;
  const query0 = v128.load(q);
  const query1 = v128.load(q + stride);
  const up0 = v128.load(dOut);
  const up1 = v128.load(at(dOut, ldo));
  let sum0 = f32x4.splat(0);
  let sum1 = f32x4.splat(0);
  const slopes0 = at(weights, padded);
  const weights1 = at(slopes0, padded);
  const slopes1 = at(weights1, padded);
  for (let j = 0; j < n; j++) {
    const ds0 = v128.load32_splat(at(slopes0, j));
    const ds1 = v128.load32_splat(at(slopes1, j));
    const key = v128.load(k);
    sum0 = mulAdd(sum0, ds0, key);
    sum1 = mulAdd(sum1, ds1, key);
    v128.store(dk, mulAdd(mulAdd(v128.load(dk), ds0, query0), ds1, query1));
    const value = mulAdd(v128.load(dv), v128.load32_splat(at(weights, j)), up0);
    v128.store(dv, mulAdd(value, v128.load32_splat(at(weights1, j)), up1));
    k += stride;
    dk += stride;
    dv += stride;
  }
  v128.store(dq, sum0);
  v128.store(dq + stride, sum1);
}

// @ts-ignore: decorator
@inline
function dot(x: usize, y: usize, n: i32): f32 {
  let sum = f32x4.splat(0);
  for (let i = 0; i < n; i += 4) sum = mulAdd(sum, v128.load(at(x, i)), v128.load(at(y, i)));
  return sumLanes(sum);
}

/**
 * qkv and dQkv hold [q heads | k heads | v heads] per row, ld floats apart; dQkv's k and v parts are added to, its
 * q part is overwritten. out/dOut: [length, heads * headDim]. scratch: (4 + headDim) * length rounded up to pages.
 */
export function attendBackward(
  qkv: usize, dQkv: usize, ld: i32, out: usize, dOut: usize, ldo: i32, length: i32, heads: i32, kvHeads: i32,
  headDim: i32, scale: f32, pages: usize, table: usize, statistics: usize, scratch: usize,
): void {
  const group = heads / kvHeads;
  const width = kvHeads * headDim;
  const padded = (length + PAGE - 1) & ~15;
  const weights = scratch;
  const slopes = at(weights, padded);
  const valuesT = at(slopes, 3 * padded);
  for (let h = 0; h < heads; h++) {
    const kv = h / group;
    const inPage = kv * headDim * PAGE;
    if (h % group == 0) {
      transposeValues(pages, table, length, headDim, 2 * width * PAGE, width * PAGE + inPage, valuesT);
    }
    const keyColumn = (heads + kv) * headDim;
    const valueColumn = keyColumn + width;
    const q = at(qkv, h * headDim);
    const o = at(out, h * headDim);
    const up = at(dOut, h * headDim);
    const dq = at(dQkv, h * headDim);
    for (let i = 0; i < length; i += 2) {
      const rows = min(2, length - i);
      for (let r = 0; r < rows; r++) {
        const row = i + r;
        const own = r * 2 * padded;
        scoreKeys(at(q, row * ld), headDim, inPage, 2 * width * PAGE, pages, table, row + 1, scale, at(weights, own));
        scoreValues(at(up, row * ldo), headDim, valuesT, row + 1, at(slopes, own));
        const stored = at(statistics, (row * heads + h) * 2);
        const delta = dot(at(o, row * ldo), at(up, row * ldo), headDim);
        const end = (row + PAGE) & ~15;
        scoreGradient(at(weights, own), at(slopes, own), end, load<f32>(stored), load<f32>(stored, 4), delta, scale);
      }
      for (let d = 0; d < headDim; d += 4) {
        const k = at(qkv, keyColumn + d);
        const dk = at(dQkv, keyColumn + d);
        const dv = at(dQkv, valueColumn + d);
        if (rows == 2) spreadPair(weights, padded, i + 2, at(q, i * ld + d), at(up, i * ldo + d), ldo, k, dk, dv, ld, at(dq, i * ld + d));
        else spread(weights, slopes, i + 1, at(q, i * ld + d), at(up, i * ldo + d), k, dk, dv, ld, at(dq, i * ld + d));
      }
    }
  }
}

/** slopes[0 .. 16 ceil(n/16)) = dO . v_j. Lanes past n hold leftovers that scoreGradient multiplies by p = 0. */
function scoreValues(up: usize, headDim: i32, valuesT: usize, n: i32, slopes: usize): void {
  for (let j = 0; j < n; j += PAGE) {
    let s0 = f32x4.splat(0);
    let s1 = f32x4.splat(0);
    let s2 = f32x4.splat(0);
    let s3 = f32x4.splat(0);
    for (let d = 0; d < headDim; d++) {
      const x = v128.load32_splat(at(up, d));
      s0 = mulAdd(s0, x, v128.load(valuesT));
      s1 = mulAdd(s1, x, v128.load(valuesT, 16));
      s2 = mulAdd(s2, x, v128.load(valuesT, 32));
      s3 = mulAdd(s3, x, v128.load(valuesT, 48));
      valuesT += 64;
    }
    const to = at(slopes, j);
    v128.store(to, s0);
    v128.store(to, s1, 16);
    v128.store(to, s2, 32);
    v128.store(to, s3, 48);
  }
}
