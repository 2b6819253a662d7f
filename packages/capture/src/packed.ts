/**
 * Owns packed arrays: little-endian int32 ids and float32 log-probabilities as the bytes a record carries.
 * Does not know which field holds what (see capture.proto).
 */
import { MortiseError } from "@mortise/contracts";

const HOST_IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** Ids as little-endian int32 bytes; always a copy, so the caller may reuse `ids`. */
export function packIds(ids: ArrayLike<number>): Uint8Array {
  return toLittleEndian(new Uint8Array(Int32Array.from(ids).buffer));
}

/** Ids from little-endian int32 bytes at any alignment; throws MORTISE_CAPTURE_INVALID on a broken length. */
export function unpackIds(bytes: Uint8Array): Int32Array {
  return new Int32Array(aligned(bytes, "ids"));
}

/** Log-probabilities as little-endian float32 bytes; NaN means missing (C10). */
export function packLogProbabilities(values: ArrayLike<number>): Uint8Array {
  return toLittleEndian(new Uint8Array(Float32Array.from(values).buffer));
}

/** Log-probabilities from little-endian float32 bytes at any alignment. */
export function unpackLogProbabilities(bytes: Uint8Array): Float32Array {
  return new Float32Array(aligned(bytes, "log-probabilities"));
}

function aligned(bytes: Uint8Array, what: string): ArrayBuffer {
  if (bytes.byteLength % 4 !== 0)
    throw new MortiseError({
      code: "MORTISE_CAPTURE_INVALID",
      message: `Packed ${what} have ${bytes.byteLength} bytes, which is not a multiple of 4.`,
    });
  const copy = new Uint8Array(bytes.byteLength);
  copy.set(bytes);
  return toLittleEndian(copy).buffer;
}

function toLittleEndian(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (HOST_IS_LITTLE_ENDIAN) return bytes;
  for (let at = 0; at < bytes.length; at += 4) bytes.subarray(at, at + 4).reverse();
  return bytes;
}
