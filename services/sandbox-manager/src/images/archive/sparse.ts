/**
 * Owns the maps of sparse members: which ranges of a file the archive holds. Four spellings are in use: GNU's
 * old header, and PAX 0.0, 0.1 and 1.0. Does not write holes.
 */
import { layerRefused } from "../image-errors.js";
import type { Bytes } from "./byte-source.js";
import { lastOf, type PaxRecords, parseDecimal } from "./pax.js";
import { BLOCK_BYTES, natural, number } from "./tar-header.js";

/** Bytes `[offset, offset + length)` of the file; everything between segments is zero. */
export interface Segment {
  readonly offset: number;
  readonly length: number;
}

export interface SparseMap {
  readonly realSize: number;
  readonly segments: readonly Segment[];
  /** Bytes of the member's content that were the map itself. */
  readonly mapBytes: number;
}

/** A map is held in memory: more ranges than this is an attack, not a file. */
const MAX_SEGMENTS = 1_000_000;
const SEGMENT_BYTES = 24;

/** GNU's old format: four ranges in the header, 21 in each block that continues it. */
export async function readOldMap(header: Buffer, source: Bytes): Promise<SparseMap> {
  const segments = oldSegments(header, 386, 4);
  let isContinued = header[482] === 1;
  while (isContinued) {
    const block = await source.take(BLOCK_BYTES);
    if (block.byteLength < BLOCK_BYTES) throw layerRefused("the archive ends inside a sparse map");
    segments.push(...oldSegments(block, 0, 21));
    isContinued = block[504] === 1;
    if (segments.length > MAX_SEGMENTS) throw tooLong();
  }
  return { realSize: natural(number(header, 483, 12), "the real size"), segments, mapBytes: 0 };
}

function oldSegments(block: Buffer, start: number, count: number): Segment[] {
  const segments: Segment[] = [];
  for (let at = start; at < start + count * SEGMENT_BYTES; at += SEGMENT_BYTES) {
    const length = natural(number(block, at + 12, 12), "a sparse range");
    if (length > 0) segments.push({ offset: natural(number(block, at, 12), "a sparse offset"), length });
  }
  return segments;
}

/** The map an extended header announces, or undefined for an ordinary member. */
export async function readPaxMap(records: PaxRecords, source: Bytes): Promise<SparseMap | undefined> {
  const last = lastOf(records);
  const size = last.get("GNU.sparse.realsize") ?? last.get("GNU.sparse.size");
  if (size === undefined) return undefined;
  const realSize = parseDecimal(size, "GNU.sparse.size");
  if (last.get("GNU.sparse.major")?.toString() === "1") return { realSize, ...(await mapInContent(source)) };
  const numbers = last.has("GNU.sparse.map") ? mapInHeader(last.get("GNU.sparse.map")!) : mapInPairs(records);
  return { realSize, segments: pairs(numbers), mapBytes: 0 };
}

function mapInHeader(value: Buffer): number[] {
  const numbers = value.byteLength === 0 ? [] : value.toString("latin1").split(",");
  return numbers.map((digits) => parseDecimal(Buffer.from(digits), "GNU.sparse.map"));
}

function mapInPairs(records: PaxRecords): number[] {
  const keys = new Set(["GNU.sparse.offset", "GNU.sparse.numbytes"]);
  return records.filter(([key]) => keys.has(key)).map(([key, value]) => parseDecimal(value, key));
}

/** Version 1.0: decimal lines in front of the content, padded to a block. */
async function mapInContent(source: Bytes): Promise<Pick<SparseMap, "segments" | "mapBytes">> {
  let block = "";
  let mapBytes = 0;
  const line = async (): Promise<number> => {
    let end = block.indexOf("\n");
    while (end < 0) {
      const bytes = await source.take(BLOCK_BYTES);
      if (bytes.byteLength < BLOCK_BYTES) throw layerRefused("the archive ends inside a sparse map");
      mapBytes += BLOCK_BYTES;
      block += bytes.toString("latin1");
      end = block.indexOf("\n");
      if (end < 0 && block.length > 2 * BLOCK_BYTES) throw layerRefused("a sparse map is malformed");
    }
    const digits = block.slice(0, end);
    block = block.slice(end + 1);
    return parseDecimal(Buffer.from(digits), "a sparse map");
  };
  const count = await line();
  if (count > MAX_SEGMENTS) throw tooLong();
  const numbers: number[] = [];
  for (let n = 0; n < 2 * count; n++) numbers.push(await line());
  return { segments: pairs(numbers), mapBytes };
}

function pairs(numbers: readonly number[]): Segment[] {
  if (numbers.length % 2 !== 0) throw layerRefused("a sparse map is malformed");
  if (numbers.length > 2 * MAX_SEGMENTS) throw tooLong();
  const segments: Segment[] = [];
  for (let at = 0; at < numbers.length; at += 2)
    if (numbers[at + 1]! > 0) segments.push({ offset: numbers[at]!, length: numbers[at + 1]! });
  return segments;
}

/** Ranges ascend, do not overlap, lie within the file and are exactly the content there is. */
export function verifyMap({ realSize, segments }: SparseMap, storedBytes: number): void {
  let end = 0;
  let sum = 0;
  for (const { offset, length } of segments) {
    if (offset < end) throw layerRefused("ranges of a sparse map overlap");
    end = offset + length;
    sum += length;
  }
  if (end > realSize || sum !== storedBytes) throw layerRefused("a sparse map does not fit its content");
}

function tooLong(): Error {
  return layerRefused(`a sparse map has more than ${MAX_SEGMENTS} ranges`);
}
