/**
 * Owns the 512-byte block that begins a member of a tar archive: POSIX ustar, the GNU variant and the old
 * format before both. Names are byte strings (one character a byte, code points 0 to 255): archives do not say
 * in which encoding names are. Does not read what follows a block.
 */
import { layerRefused } from "../image-errors.js";

export const BLOCK_BYTES = 512;

/** Fields of one block, as they stand there. */
export interface TarHeader {
  readonly name: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Bytes of content that follow the block in the archive, without padding. */
  readonly size: number;
  /** Seconds since the epoch. */
  readonly mtime: number;
  readonly type: string;
  readonly linkName: string;
  readonly major: number;
  readonly minor: number;
  readonly isGnu: boolean;
}

export function isZeroBlock(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** Throws MORTISE_SANDBOX_IMAGE_LAYER when the checksum or a number is wrong. */
export function parseHeader(block: Buffer): TarHeader {
  verifyChecksum(block);
  const magic = block.toString("latin1", 257, 265);
  const isPosix = magic === "ustar\x0000";
  const isGnu = magic === "ustar  \0";
  const name = text(block, 0, 100);
  const prefix = isPosix ? text(block, 345, 155) : "";
  return {
    name: prefix === "" ? name : `${prefix}/${name}`,
    mode: number(block, 100, 8) & 0o7777,
    uid: number(block, 108, 8),
    gid: number(block, 116, 8),
    size: natural(number(block, 124, 12), "size"),
    mtime: number(block, 136, 12),
    type: String.fromCharCode(block[156]!),
    linkName: text(block, 157, 100),
    major: isPosix || isGnu ? number(block, 329, 8) : 0,
    minor: isPosix || isGnu ? number(block, 337, 8) : 0,
    isGnu,
  };
}

/** A byte string up to the first NUL. */
export function text(block: Buffer, start: number, length: number): string {
  const end = block.indexOf(0, start);
  return block.toString("latin1", start, end < 0 || end > start + length ? start + length : end);
}

/** Octal digits, or GNU's base 256 for what does not fit: first bit set, then a big-endian two's complement. */
export function number(block: Buffer, start: number, length: number): number {
  const first = block[start]!;
  if ((first & 0x80) === 0) return octal(block.toString("latin1", start, start + length));
  const isNegative = (first & 0x40) !== 0;
  let value = BigInt(isNegative ? first | ~0x7f : first & 0x3f);
  for (let at = start + 1; at < start + length; at++) value = (value << 8n) | BigInt(block[at]!);
  const result = Number(value);
  if (!Number.isSafeInteger(result)) throw layerRefused("a number of a header is out of range");
  return result;
}

export function natural(value: number, field: string): number {
  if (!Number.isSafeInteger(value) || value < 0) throw layerRefused(`${field} ${value} is no size`);
  return value;
}

function octal(field: string): number {
  const digits = field.replaceAll("\0", " ").trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw layerRefused("a number of a header is not octal");
  return Number.parseInt(digits, 8);
}

/** Sum of all bytes with the field itself as spaces; old programs summed signed bytes. */
function verifyChecksum(block: Buffer): void {
  let unsigned = 0;
  let signed = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) {
    const byte = at >= 148 && at < 156 ? 32 : block[at]!;
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  const stated = number(block, 148, 8);
  if (stated !== unsigned && stated !== signed) throw layerRefused("a header's checksum is wrong");
}
