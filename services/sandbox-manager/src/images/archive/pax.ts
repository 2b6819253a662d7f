/**
 * Owns PAX extended headers: records `<length> <key>=<value>\n`, whose values are bytes and may hold anything,
 * a NUL or a newline included. Does not decide which keys count.
 */
import { layerRefused } from "../image-errors.js";

/** Records in the order they were written; GNU's first sparse format repeats keys. */
export type PaxRecords = readonly (readonly [key: string, value: Buffer])[];

/** Extended attributes are these keys, as star, GNU tar and Go write them. */
export const XATTR_PREFIX = "SCHILY.xattr.";

/** A record's length field counts itself, so it never needs more digits than this. */
const MAX_LENGTH_DIGITS = 10;

export function parsePax(bytes: Buffer): PaxRecords {
  const records: [string, Buffer][] = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const space = bytes.indexOf(32, at);
    const digits = space < 0 ? "" : bytes.toString("latin1", at, space);
    const length = /^[0-9]+$/.test(digits) && digits.length <= MAX_LENGTH_DIGITS ? Number(digits) : 0;
    const end = at + length;
    const equals = bytes.indexOf(61, space);
    if (end > bytes.byteLength || equals < 0 || equals >= end || bytes[end - 1] !== 10)
      throw layerRefused("an extended header is malformed");
    records.push([
      bytes.toString("latin1", space + 1, equals),
      Buffer.from(bytes.subarray(equals + 1, end - 1)),
    ]);
    at = end;
  }
  return records;
}

/** Later records replace earlier ones; an empty value takes a key back. */
export function lastOf(records: PaxRecords): Map<string, Buffer> {
  const last = new Map<string, Buffer>();
  for (const [key, value] of records) {
    // An empty extended attribute is a value like any other.
    if (value.byteLength === 0 && !key.startsWith(XATTR_PREFIX)) last.delete(key);
    else last.set(key, value);
  }
  return last;
}

/** A moment with all its digits: doubles do not hold nanoseconds since 1970. */
export interface Timestamp {
  readonly seconds: number;
  readonly nanoseconds: number;
}

/** Decimal seconds, possibly negative and with a fraction. */
export function parseTimestamp(value: string): Timestamp {
  const match = /^(-?)([0-9]{1,15})(?:\.([0-9]*))?$/.exec(value);
  if (match === null) throw layerRefused("a time of an extended header is malformed");
  const seconds = Number(match[2]);
  const nanoseconds = Number((match[3] ?? "").slice(0, 9).padEnd(9, "0"));
  if (match[1] === "") return { seconds, nanoseconds };
  return nanoseconds === 0
    ? { seconds: -seconds, nanoseconds }
    : { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds };
}

export function parseDecimal(value: Buffer, field: string): number {
  const digits = value.toString("latin1");
  const parsed = /^[0-9]{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
  if (!Number.isSafeInteger(parsed)) throw layerRefused(`${field} of an extended header is no number`);
  return parsed;
}
