/**
 * Owns what a table of the archive is: named, typed columns computed from a message and its stream sequence.
 * Does not own which tables exist (see the other files of this folder).
 */
import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";

/** Parquet types used here; JSON is a string column that readers parse. */
export type ColumnType = "BOOLEAN" | "INT32" | "INT64" | "DOUBLE" | "STRING" | "BYTE_ARRAY" | "JSON";

export interface Column<T> {
  readonly name: string;
  readonly type: ColumnType;
  /** undefined is stored as null: missing is missing (C10). */
  readonly of: (message: T, sequence: bigint) => unknown;
}

export interface Table<T> {
  readonly name: string;
  readonly columns: readonly Column<T>[];
}

/** A message with the table it belongs to. */
export interface Row {
  readonly table: Table<never>;
  readonly message: unknown;
  readonly sequence: bigint;
}

export function row<T>(table: Table<T>, message: T, sequence: bigint): Row {
  return { table: table as unknown as Table<never>, message, sequence };
}

/** Where in its stream the row was: orders rows, and is unique within a stream. */
export function sequenceColumn<T>(): Column<T> {
  return { name: "sequence", type: "INT64", of: (_, sequence) => sequence };
}

/** The whole message in protobuf's JSON form, contents by reference. */
export function recordColumn<D extends DescMessage>(schema: D): Column<MessageShape<D>> {
  return { name: "record", type: "JSON", of: (message) => toJson(schema, message) };
}
