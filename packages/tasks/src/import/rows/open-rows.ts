/** Owns which reader reads a file, and which files of a folder hold rows. Does not know data sets. */
import { readdirSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { jsonRows } from "./json-rows.js";
import { parquetRows } from "./parquet-rows.js";
import type { Row, RowSource } from "./row.js";

const ROW_FILE = /\.(parquet|jsonl|ndjson|json)$/;
const PARQUET_MAGIC = "PAR1";

/**
 * Rows of one file, or of every parquet, JSONL and JSON file below a folder, in the order of their paths.
 * Throws MORTISE_TASK_SOURCE for a folder without any; the file system's own error for a path that is not there.
 */
export async function openRows(path: string): Promise<RowSource> {
  if (!statSync(path).isDirectory()) return openFile(path);
  const names = readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) =>
    ROW_FILE.test(name),
  );
  if (names.length === 0)
    throw new MortiseError({
      code: "MORTISE_TASK_SOURCE",
      message: `${path}: holds no parquet, JSONL or JSON file.`,
      detail: { source: path },
    });
  const sources: RowSource[] = [];
  for (const name of names.sort()) sources.push(await openFile(join(path, name)));
  return joined(path, sources);
}

/** The rows of several sources, one behind the other. */
export function joined(name: string, sources: readonly RowSource[]): RowSource {
  return {
    name,
    rows: async function* (): AsyncIterable<Row> {
      for (const source of sources) yield* source.rows();
    },
  };
}

async function openFile(path: string): Promise<RowSource> {
  const file = await open(path);
  try {
    const start = Buffer.alloc(PARQUET_MAGIC.length);
    await file.read(start, 0, start.length, 0);
    return start.toString("latin1") === PARQUET_MAGIC ? parquetRows(path) : jsonRows(path);
  } finally {
    await file.close();
  }
}
