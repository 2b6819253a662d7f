/** Owns turning rows of one table into the bytes of a parquet file, and back into objects. */
import { parquetReadObjects } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import type { Column, Row } from "../tables/table.js";

/** Rows are all of one table; at least one. */
export function encodeRows(rows: readonly Row[]): Uint8Array {
  const columns = rows[0]!.table.columns as readonly Column<unknown>[];
  const columnData = columns.map(({ name, type, of }) => ({
    name,
    type,
    data: rows.map(({ message, sequence }) => of(message, sequence) ?? null),
  }));
  return new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: rows.length }));
}

export type ArchivedRow = Readonly<Record<string, unknown>>;

/** Rows as objects: bytes as Uint8Array, INT64 as bigint, JSON parsed, null where missing. */
export async function decodeRows(bytes: Uint8Array): Promise<ArchivedRow[]> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  return parquetReadObjects({ file, utf8: false });
}
