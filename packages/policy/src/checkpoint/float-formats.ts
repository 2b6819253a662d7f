/** Owns the decoding of stored number formats to float32: bfloat16, IEEE half, float32; all little-endian. */

export type FloatFormat = "F32" | "BF16" | "F16";

export const FORMAT_BYTES: Readonly<Record<FloatFormat, number>> = { F32: 4, BF16: 2, F16: 2 };

/** bfloat16 is the upper half of a float32. */
export function decodeBf16(bits: Uint16Array): Float32Array {
  const out = new Uint32Array(bits.length);
  for (let i = 0; i < bits.length; i++) out[i] = bits[i]! << 16;
  return new Float32Array(out.buffer);
}

/** IEEE 754 binary16, subnormals, infinities and NaN included. */
export function decodeF16(bits: Uint16Array): Float32Array {
  const out = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) {
    const half = bits[i]!;
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 0) out[i] = sign * fraction * 2 ** -24;
    else if (exponent === 31) out[i] = fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    else out[i] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return out;
}

/** Decodes a byte range of any alignment, into memory of its own. */
export function decodeFloats(bytes: Uint8Array, format: FloatFormat): Float32Array {
  // Not `slice`: on a Buffer that is a view of the same memory.
  const aligned = new Uint8Array(bytes).buffer;
  if (format === "F32") return new Float32Array(aligned);
  return format === "BF16" ? decodeBf16(new Uint16Array(aligned)) : decodeF16(new Uint16Array(aligned));
}
