/** Four-lane arithmetic shared by the kernels. */

/** acc + x * y, rounded twice (R2). */
// @ts-ignore: decorator
@inline
export function mulAdd(acc: v128, x: v128, y: v128): v128 {
  return f32x4.add(acc, f32x4.mul(x, y));
}

// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return f32x4.extract_lane(v, 0) + f32x4.extract_lane(v, 1) + (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3));
}

// @ts-ignore: decorator
@inline
export function maxLanes(v: v128): f32 {
  return max(
    max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

/** Address of a float in a row-major matrix. */
// @ts-ignore: decorator
@inline
export function at(base: usize, index: i32): usize {
  return base + (<usize>index << 2);
}

/**
 * exp of four lanes, about 1 ulp. x = n ln2 + r with |r| <= ln2/2; e^r by its Taylor polynomial of degree 6
 * (the remainder is below 2^-24 there); 2^n is written into the exponent bits. Below -87 the result is exactly 0,
 * which is what masked scores of -Infinity need.
 */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const clamped = f32x4.max(f32x4.min(x, f32x4.splat(88.0)), f32x4.splat(-87.0));
  const n = f32x4.nearest(f32x4.mul(clamped, f32x4.splat(1.44269504)));
  // ln2 in two parts: the first has few bits, so n * part is exact.
  let r = f32x4.sub(clamped, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.add(r, f32x4.mul(n, f32x4.splat(2.12194440e-4)));
  let p = mulAdd(f32x4.splat(8.3333333e-3), r, f32x4.splat(1.3888889e-3));
  p = mulAdd(f32x4.splat(4.1666668e-2), r, p);
  p = mulAdd(f32x4.splat(0.16666667), r, p);
  p = mulAdd(f32x4.splat(0.5), r, p);
  p = mulAdd(f32x4.splat(1.0), r, p);
  p = mulAdd(f32x4.splat(1.0), r, p);
  const scale = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return v128.andnot(f32x4.mul(p, scale), f32x4.lt(x, f32x4.splat(-87.0)));
}
