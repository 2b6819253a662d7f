/**
 * Owns rows of parquet files, read one row group at a time, with values as JSON would have them: numbers for
 * 64-bit integers that fit, ISO 8601 for times, text for bytes.
 */
import { basename } from "node:path";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { MortiseError } from "@mortise/contracts";
import { asyncBufferFromFile, type Compressors, parquetMetadataAsync, parquetReadObjects } from "hyparquet";
import { isObject, present, type Row, type RowSource } from "./row.js";

/** Snappy is hyparquet's own; the others are Node's. */
const COMPRESSORS: Compressors = {
  GZIP: (bytes) => gunzipSync(bytes),
  BROTLI: (bytes) => brotliDecompressSync(bytes),
  ZSTD: (bytes) => zstdDecompressSync(bytes),
};

export function parquetRows(path: string): RowSource {
  return {
    name: path,
    rows: async function* () {
      const file = await asyncBufferFromFile(path);
      const metadata = await readable(path, () => parquetMetadataAsync(file));
      let start = 0;
      for (const group of metadata.row_groups) {
        const end = start + Number(group.num_rows);
        const rows = await readable(path, () =>
          parquetReadObjects({ file, metadata, rowStart: start, rowEnd: end, compressors: COMPRESSORS }),
        );
        for (const [index, row] of rows.entries())
          yield {
            place: `${basename(path)} row ${start + index}`,
            fields: present(plain(row) as Row["fields"]),
          };
        start = end;
      }
    },
  };
}

async function readable<T>(path: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TASK_SOURCE",
      message: `${path}: not a readable parquet file: ${cause instanceof Error ? cause.message : String(cause)}`,
      fix: "Download the file again; if it is whole, convert it to JSONL.",
      cause,
      detail: { source: path },
    });
  }
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint")
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("utf8");
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, plain(of)]));
  return value;
}
