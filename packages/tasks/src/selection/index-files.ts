/**
 * Owns the files of a thin index: index.jsonl and index.parquet with the same rows, and index.json, what a
 * scheduler reads. Each is replaced in one rename. Does not choose tasks.
 */
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { writeTaskIndex } from "../harbor/task-index.js";
import { openRows } from "../import/rows/open-rows.js";
import { encodeIndex, joinedRow } from "./index-parquet.js";
import { fromIndexRow, type IndexedTask, toIndexRow } from "./indexed-task.js";

const JSONL = "index.jsonl";
const PARQUET = "index.parquet";

/** Where the rows of an index are: the file itself, or the file of that name in a directory. */
export function indexFile(path: string): string {
  if (!statSync(path).isDirectory()) return path;
  const found = [JSONL, PARQUET].map((name) => join(path, name)).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new MortiseError({
    code: "MORTISE_TASK_SOURCE",
    message: `${path}: has neither ${JSONL} nor ${PARQUET}.`,
    fix: "Name a directory `mortise tasks import` or `mortise tasks index` wrote, or an index file.",
    detail: { source: path },
  });
}

/** Reads a JSONL, JSON or parquet index, or that of a directory. Throws MORTISE_TASK_RECORD or MORTISE_TASK_SOURCE. */
export async function readIndex(path: string): Promise<IndexedTask[]> {
  const tasks: IndexedTask[] = [];
  for await (const { place, fields } of (await openRows(indexFile(path))).rows())
    tasks.push(fromIndexRow(joinedRow(fields), place));
  return tasks;
}

/**
 * Writes the files of an index into a directory; `entries` of index.json are the tasks with a digest. At least one
 * task.
 */
export function writeIndex(directory: string, tasks: readonly IndexedTask[], split: string): string[] {
  mkdirSync(directory, { recursive: true });
  const rows = tasks.map(toIndexRow);
  put(join(directory, JSONL), rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  put(join(directory, PARQUET), encodeIndex(rows));
  writeTaskIndex(
    directory,
    tasks.flatMap(({ id, digest, split: own = split }) =>
      digest === undefined ? [] : [{ id, digest, split: own }],
    ),
  );
  return [JSONL, PARQUET, "index.json"].map((name) => join(directory, name));
}

function put(path: string, content: string | Uint8Array): void {
  writeFileSync(`${path}.partial`, content);
  renameSync(`${path}.partial`, path);
}
