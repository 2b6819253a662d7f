/** Owns what a file of records gives: rows with the place each stands at. Does not know data sets. */

export interface Row {
  /** For messages: `file.jsonl:12`, `file.parquet row 3`. */
  readonly place: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Rows that can be read more than once: every row is checked before anything is written. */
export interface RowSource {
  readonly name: string;
  rows(): AsyncIterable<Row>;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Without what has no value: a parquet file has every column in every row, a JSON file may leave it out. */
export function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
  );
}
