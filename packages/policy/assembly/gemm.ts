/**
 * Matrix product C[M,N] (+)= A[M,K] * B[K,N] with B packed into panels of eight columns: panel p holds
 * B[k][8p .. 8p+7] for k = 0 .. K-1, zero-padded to eight columns. K is a multiple of 4.
 *
 * One output element is one accumulator that walks k upwards, in the five-row tile as in the one-row tiles (R1).
 * Five rows by eight columns use ten accumulators of the fifteen usable vector registers: the largest tile that
 * does not spill.
 */
import { at, mulAdd } from "./lanes";

/** Bytes of A walked by all panels before the next rows: a first-level cache. */
const BLOCK_BYTES: i32 = 32768;

/** Packs W[rows,cols] (ld = cols) as B = W^T: a panel holds eight rows of W, transposed. */
export function packColumns(w: usize, rows: i32, cols: i32, out: usize): void {
  for (let r = 0; r < rows; r += 8) {
    for (let k = 0; k < cols; k++) {
      for (let j = 0; j < 8; j++) {
        store<f32>(out, r + j < rows ? load<f32>(at(w, (r + j) * cols + k)) : 0);
        out += 4;
      }
    }
  }
}

/** Packs X[rows,cols] as B = X, with rows (the summed index) zero-padded to `paddedRows`. cols is a multiple of 4. */
export function packRows(x: usize, ld: i32, rows: i32, cols: i32, paddedRows: i32, out: usize): void {
  for (let c = 0; c < cols; c += 8) {
    const wide = c + 4 < cols;
    let from = at(x, c);
    for (let r = 0; r < rows; r++) {
      v128.store(out, v128.load(from));
      v128.store(out, wide ? v128.load(from, 16) : f32x4.splat(0), 16);
      from = at(from, ld);
      out += 32;
    }
    const padding = (paddedRows - rows) << 5;
    memory.fill(out, 0, padding);
    out += padding;
  }
}

/** out[cols,rows] = X[rows,cols]^T with row stride `ldOut`; columns rows..ldOut of `out` become 0. cols is a multiple of 4. */
export function transpose(x: usize, ld: i32, rows: i32, cols: i32, out: usize, ldOut: i32): void {
  let r = 0;
  for (; r + 4 <= rows; r += 4) {
    for (let c = 0; c < cols; c += 4) {
      const from = at(x, r * ld + c);
      const x0 = v128.load(from);
      const x1 = v128.load(at(from, ld));
      const x2 = v128.load(at(from, 2 * ld));
      const x3 = v128.load(at(from, 3 * ld));
      const low01 = v128.shuffle<f32>(x0, x1, 0, 4, 1, 5);
      const high01 = v128.shuffle<f32>(x0, x1, 2, 6, 3, 7);
      const low23 = v128.shuffle<f32>(x2, x3, 0, 4, 1, 5);
      const high23 = v128.shuffle<f32>(x2, x3, 2, 6, 3, 7);
      const to = at(out, c * ldOut + r);
      v128.store(to, v128.shuffle<f64>(low01, low23, 0, 2));
      v128.store(at(to, ldOut), v128.shuffle<f64>(low01, low23, 1, 3));
      v128.store(at(to, 2 * ldOut), v128.shuffle<f64>(high01, high23, 0, 2));
      v128.store(at(to, 3 * ldOut), v128.shuffle<f64>(high01, high23, 1, 3));
    }
  }
  for (; r < ldOut; r++) {
    for (let c = 0; c < cols; c++) {
      store<f32>(at(out, c * ldOut + r), r < rows ? load<f32>(at(x, r * ld + c)) : 0);
    }
  }
}

/** C[5,8] (+)= A[5,K] * panel. The sum over k is unrolled by four, by hand: the compiler does not unroll. */
function tile5x8(a: usize, lda: i32, b: usize, c: usize, ldc: i32, k: i32, accumulate: bool): void {
  let a0 = a;
  let a1 = at(a, 1 * lda);
  let a2 = at(a, 2 * lda);
  let a3 = at(a, 3 * lda);
  let a4 = at(a, 4 * lda);
  const c0 = c;
  const c1 = at(c, 1 * ldc);
  const c2 = at(c, 2 * ldc);
  const c3 = at(c, 3 * ldc);
  const c4 = at(c, 4 * ldc);
  let s0 = accumulate ? v128.load(c0) : f32x4.splat(0);
  let t0 = accumulate ? v128.load(c0, 16) : f32x4.splat(0);
  let s1 = accumulate ? v128.load(c1) : f32x4.splat(0);
  let t1 = accumulate ? v128.load(c1, 16) : f32x4.splat(0);
  let s2 = accumulate ? v128.load(c2) : f32x4.splat(0);
  let t2 = accumulate ? v128.load(c2, 16) : f32x4.splat(0);
  let s3 = accumulate ? v128.load(c3) : f32x4.splat(0);
  let t3 = accumulate ? v128.load(c3, 16) : f32x4.splat(0);
  let s4 = accumulate ? v128.load(c4) : f32x4.splat(0);
  let t4 = accumulate ? v128.load(c4, 16) : f32x4.splat(0);
  let x: v128;
  let low: v128;
  let high: v128;
  for (; k > 0; k -= 4) {
    low = v128.load(b, 0);
    high = v128.load(b, 16);
    x = v128.load32_splat(a0, 0);
    s0 = mulAdd(s0, x, low);
    t0 = mulAdd(t0, x, high);
    x = v128.load32_splat(a1, 0);
    s1 = mulAdd(s1, x, low);
    t1 = mulAdd(t1, x, high);
    x = v128.load32_splat(a2, 0);
    s2 = mulAdd(s2, x, low);
    t2 = mulAdd(t2, x, high);
    x = v128.load32_splat(a3, 0);
    s3 = mulAdd(s3, x, low);
    t3 = mulAdd(t3, x, high);
    x = v128.load32_splat(a4, 0);
    s4 = mulAdd(s4, x, low);
    t4 = mulAdd(t4, x, high);
    low = v128.load(b, 32);
    high = v128.load(b, 48);
    x = v128.load32_splat(a0, 4);
    s0 = mulAdd(s0, x, low);
    t0 = mulAdd(t0, x, high);
    x = v128.load32_splat(a1, 4);
    s1 = mulAdd(s1, x, low);
    t1 = mulAdd(t1, x, high);
    x = v128.load32_splat(a2, 4);
    s2 = mulAdd(s2, x, low);
    t2 = mulAdd(t2, x, high);
    x = v128.load32_splat(a3, 4);
    s3 = mulAdd(s3, x, low);
    t3 = mulAdd(t3, x, high);
    x = v128.load32_splat(a4, 4);
    s4 = mulAdd(s4, x, low);
    t4 = mulAdd(t4, x, high);
    low = v128.load(b, 64);
    high = v128.load(b, 80);
    x = v128.load32_splat(a0, 8);
    s0 = mulAdd(s0, x, low);
    t0 = mulAdd(t0, x, high);
    x = v128.load32_splat(a1, 8);
    s1 = mulAdd(s1, x, low);
    t1 = mulAdd(t1, x, high);
    x = v128.load32_splat(a2, 8);
    s2 = mulAdd(s2, x, low);
    t2 = mulAdd(t2, x, high);
    x = v128.load32_splat(a3, 8);
    s3 = mulAdd(s3, x, low);
    t3 = mulAdd(t3, x, high);
    x = v128.load32_splat(a4, 8);
    s4 = mulAdd(s4, x, low);
    t4 = mulAdd(t4, x, high);
    low = v128.load(b, 96);
    high = v128.load(b, 112);
    x = v128.load32_splat(a0, 12);
    s0 = mulAdd(s0, x, low);
    t0 = mulAdd(t0, x, high);
    x = v128.load32_splat(a1, 12);
    s1 = mulAdd(s1, x, low);
    t1 = mulAdd(t1, x, high);
    x = v128.load32_splat(a2, 12);
    s2 = mulAdd(s2, x, low);
    t2 = mulAdd(t2, x, high);
    x = v128.load32_splat(a3, 12);
    s3 = mulAdd(s3, x, low);
    t3 = mulAdd(t3, x, high);
    x = v128.load32_splat(a4, 12);
    s4 = mulAdd(s4, x, low);
    t4 = mulAdd(t4, x, high);
    b += 128;
    a0 += 16;
    a1 += 16;
    a2 += 16;
    a3 += 16;
    a4 += 16;
  }
  v128.store(c0, s0);
  v128.store(c0, t0, 16);
  v128.store(c1, s1);
  v128.store(c1, t1, 16);
  v128.store(c2, s2);
  v128.store(c2, t2, 16);
  v128.store(c3, s3);
  v128.store(c3, t3, 16);
  v128.store(c4, s4);
  v128.store(c4, t4, 16);
}

/** C[1,32] (+)= A[1,K] * four neighbouring panels: one row alone still fills eight accumulators. */
function tile1x32(a: usize, b: usize, panelBytes: usize, c: usize, k: i32, accumulate: bool): void {
  let b0 = b;
  let b1 = b + 1 * panelBytes;
  let b2 = b + 2 * panelBytes;
  let b3 = b + 3 * panelBytes;
  let s0 = accumulate ? v128.load(c, 0) : f32x4.splat(0);
  let t0 = accumulate ? v128.load(c, 16) : f32x4.splat(0);
  let s1 = accumulate ? v128.load(c, 32) : f32x4.splat(0);
  let t1 = accumulate ? v128.load(c, 48) : f32x4.splat(0);
  let s2 = accumulate ? v128.load(c, 64) : f32x4.splat(0);
  let t2 = accumulate ? v128.load(c, 80) : f32x4.splat(0);
  let s3 = accumulate ? v128.load(c, 96) : f32x4.splat(0);
  let t3 = accumulate ? v128.load(c, 112) : f32x4.splat(0);
  let x: v128;
  for (; k > 0; k -= 2) {
    x = v128.load32_splat(a, 0);
    s0 = mulAdd(s0, x, v128.load(b0, 0));
    t0 = mulAdd(t0, x, v128.load(b0, 16));
    s1 = mulAdd(s1, x, v128.load(b1, 0));
    t1 = mulAdd(t1, x, v128.load(b1, 16));
    s2 = mulAdd(s2, x, v128.load(b2, 0));
    t2 = mulAdd(t2, x, v128.load(b2, 16));
    s3 = mulAdd(s3, x, v128.load(b3, 0));
    t3 = mulAdd(t3, x, v128.load(b3, 16));
    x = v128.load32_splat(a, 4);
    s0 = mulAdd(s0, x, v128.load(b0, 32));
    t0 = mulAdd(t0, x, v128.load(b0, 48));
    s1 = mulAdd(s1, x, v128.load(b1, 32));
    t1 = mulAdd(t1, x, v128.load(b1, 48));
    s2 = mulAdd(s2, x, v128.load(b2, 32));
    t2 = mulAdd(t2, x, v128.load(b2, 48));
    s3 = mulAdd(s3, x, v128.load(b3, 32));
    t3 = mulAdd(t3, x, v128.load(b3, 48));
    a += 8;
    b0 += 64;
    b1 += 64;
    b2 += 64;
    b3 += 64;
  }
  v128.store(c, s0, 0);
  v128.store(c, t0, 16);
  v128.store(c, s1, 32);
  v128.store(c, t1, 48);
  v128.store(c, s2, 64);
  v128.store(c, t2, 80);
  v128.store(c, s3, 96);
  v128.store(c, t3, 112);
}

/** C[1,columns <= 8] (+)= A[1,K] * panel: what the wider tiles leave over. */
function tile1x8(a: usize, b: usize, c: usize, columns: i32, k: i32, accumulate: bool): void {
  const low = accumulate ? v128.load(c) : f32x4.splat(0);
  const high = accumulate && columns == 8 ? v128.load(c, 16) : f32x4.splat(0);
  let s = low;
  let t = high;
  for (; k > 0; k--) {
    const x = v128.load32_splat(a);
    s = mulAdd(s, x, v128.load(b));
    t = mulAdd(t, x, v128.load(b, 16));
    a += 4;
    b += 32;
  }
  v128.store(c, s);
  if (columns == 8) v128.store(c, t, 16);
}

/** Rows `first .. first + rows - 1` of the product. */
function gemmBlock(
  a: usize,
  lda: i32,
  b: usize,
  c: usize,
  ldc: i32,
  rows: i32,
  n: i32,
  k: i32,
  accumulate: bool,
): void {
  const panelBytes = (<usize>k) << 5;
  const tiled = rows - (rows % 5);
  const whole = n >> 3;
  for (let p = 0; p < whole; p++) {
    const panel = b + <usize>p * panelBytes;
    for (let r = 0; r < tiled; r += 5) {
      tile5x8(at(a, r * lda), lda, panel, at(c, r * ldc + p * 8), ldc, k, accumulate);
    }
  }
  for (let r = tiled; r < rows; r++) {
    const row = at(a, r * lda);
    const to = at(c, r * ldc);
    let p = 0;
    for (; p + 4 <= whole; p += 4)
      tile1x32(row, b + <usize>p * panelBytes, panelBytes, at(to, p * 8), k, accumulate);
    for (; p < whole; p++) tile1x8(row, b + <usize>p * panelBytes, at(to, p * 8), 8, k, accumulate);
  }
  const left = n & 7;
  if (left != 0) {
    const panel = b + <usize>whole * panelBytes;
    for (let r = 0; r < rows; r++)
      tile1x8(at(a, r * lda), panel, at(c, r * ldc + whole * 8), left, k, accumulate);
  }
}

/** C[m,n] = A[m,k] * B, or C += A * B when `accumulate`. n and k are multiples of 4; see the module for B. */
export function gemm(
  a: usize,
  lda: i32,
  b: usize,
  c: usize,
  ldc: i32,
  m: i32,
  n: i32,
  k: i32,
  accumulate: bool,
): void {
  const block = max(5, (BLOCK_BYTES / (k * 20)) * 5);
  for (let r = 0; r < m; r += block) {
    gemmBlock(at(a, r * lda), lda, b, at(c, r * ldc), ldc, min(block, m - r), n, k, accumulate);
  }
}
