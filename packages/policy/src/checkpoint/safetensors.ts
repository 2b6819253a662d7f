/**
 * Owns the safetensors format: u64 little-endian header length, JSON header, data. Reads F32, BF16 and F16 as
 * float32 and writes F32. Does not know which tensors a model needs.
 *
 * Everything in a header is untrusted: its length is capped, and the tensors must tile the data exactly, each
 * with the size its shape and type imply.
 */
import { createHash } from "node:crypto";
import { MortiseError } from "@mortise/contracts";
import { decodeFloats, type FloatFormat, FORMAT_BYTES } from "./float-formats.js";

/** A header of 100 million bytes describes more tensors than any model has; larger is an attack or garbage. */
const MAX_HEADER_BYTES = 100_000_000;
const PREFIX_BYTES = 8;
const METADATA = "__metadata__";

export interface Tensor {
  readonly shape: readonly number[];
  /** Row-major. */
  readonly values: Float32Array;
}

export interface TensorEntry {
  readonly format: FloatFormat;
  readonly shape: readonly number[];
  /** Byte range in the file. */
  readonly begin: number;
  readonly end: number;
}

export interface TensorFile {
  readonly entries: ReadonlyMap<string, TensorEntry>;
  readonly metadata: Readonly<Record<string, string>>;
  /** Decodes one tensor. @throws MortiseError when it is not in the file. */
  read(name: string): Tensor;
}

function malformed(source: string, message: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_SAFETENSORS",
    message: `${source}: ${message}`,
    detail: { source },
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function parseHeader(
  bytes: Uint8Array,
  source: string,
): { json: Record<string, unknown>; dataStart: number } {
  if (bytes.byteLength < PREFIX_BYTES) throw malformed(source, "shorter than the 8-byte header length.");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES))
    throw malformed(source, `header length ${length} is above ${MAX_HEADER_BYTES}.`);
  const dataStart = PREFIX_BYTES + Number(length);
  if (dataStart > bytes.byteLength)
    throw malformed(source, `header length ${length} runs past the end of the file.`);
  let json: unknown;
  try {
    json = JSON.parse(
      new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(PREFIX_BYTES, dataStart)),
    );
  } catch (cause) {
    throw malformed(source, `the header is not JSON (${(cause as Error).message}).`);
  }
  if (!isObject(json)) throw malformed(source, "the header is not a JSON object.");
  return { json, dataStart };
}

function parseEntry(name: string, value: unknown, dataStart: number, source: string): TensorEntry {
  if (!isObject(value)) throw malformed(source, `tensor "${name}" is not an object.`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== "string" || !Object.hasOwn(FORMAT_BYTES, dtype)) {
    throw malformed(source, `tensor "${name}": dtype ${JSON.stringify(dtype)} is not F32, BF16 or F16.`);
  }
  if (!Array.isArray(shape) || !shape.every(isCount))
    throw malformed(source, `tensor "${name}": shape is not a list of sizes.`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw malformed(source, `tensor "${name}": data_offsets is not [begin, end].`);
  }
  const format = dtype as FloatFormat;
  const [begin, end] = offsets as [number, number];
  const size = (shape as number[]).reduce((product, n) => product * n, FORMAT_BYTES[format]);
  if (!Number.isSafeInteger(size) || end - begin !== size) {
    throw malformed(
      source,
      `tensor "${name}": data_offsets span ${end - begin} bytes, shape and dtype imply ${size}.`,
    );
  }
  return { format, shape: shape as number[], begin: dataStart + begin, end: dataStart + end };
}

function checkTiling(
  entries: ReadonlyMap<string, TensorEntry>,
  dataStart: number,
  fileEnd: number,
  source: string,
): void {
  let expected = dataStart;
  for (const [name, entry] of [...entries].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end)) {
    if (entry.begin !== expected)
      throw malformed(source, `tensor "${name}" leaves a gap or overlaps another.`);
    expected = entry.end;
  }
  if (expected !== fileEnd)
    throw malformed(source, `tensors end at byte ${expected}, the file at ${fileEnd}.`);
}

function parseMetadata(value: unknown, source: string): Record<string, string> {
  if (value === undefined) return {};
  if (!isObject(value) || Object.values(value).some((v) => typeof v !== "string")) {
    throw malformed(source, `${METADATA} is not a map of strings.`);
  }
  return value as Record<string, string>;
}

/** Validates the whole header; data is decoded on demand. @param source file name for errors. */
export function readSafetensors(bytes: Uint8Array, source = "safetensors"): TensorFile {
  const { json, dataStart } = parseHeader(bytes, source);
  const entries = new Map<string, TensorEntry>();
  for (const [name, value] of Object.entries(json)) {
    if (name !== METADATA) entries.set(name, parseEntry(name, value, dataStart, source));
  }
  checkTiling(entries, dataStart, bytes.byteLength, source);
  return {
    entries,
    metadata: parseMetadata(json[METADATA], source),
    read(name) {
      const entry = entries.get(name);
      if (entry === undefined) throw malformed(source, `tensor "${name}" is missing.`);
      return {
        shape: entry.shape,
        values: decodeFloats(bytes.subarray(entry.begin, entry.end), entry.format),
      };
    },
  };
}

/** Writes F32 in the order given. The same tensors give the same bytes. */
export function writeSafetensors(
  tensors: Iterable<readonly [string, Tensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const header: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { [METADATA]: metadata };
  const list = [...tensors];
  let offset = 0;
  for (const [name, { shape, values }] of list) {
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + values.byteLength] };
    offset += values.byteLength;
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  // Data starts at a multiple of 8, as other readers map it directly; JSON may end in spaces.
  const headerBytes = Math.ceil(json.byteLength / 8) * 8;
  const out = new Uint8Array(PREFIX_BYTES + headerBytes + offset);
  new DataView(out.buffer).setBigUint64(0, BigInt(headerBytes), true);
  out.fill(0x20, PREFIX_BYTES, PREFIX_BYTES + headerBytes);
  out.set(json, PREFIX_BYTES);
  let position = PREFIX_BYTES + headerBytes;
  for (const [, { values }] of list) {
    out.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), position);
    position += values.byteLength;
  }
  return out;
}

/** SHA-256 of the bytes, lower-case hex: the identity of a set of weights in manifests and receipts. */
export function weightsDigest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
