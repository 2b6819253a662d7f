/**
 * Owns the read side of the archive: the rows of one table of one run, in stream order. Reads files only: no bus, no
 * running archiver needed.
 */
import { readFile } from "node:fs/promises";
import { blobPath, dataFiles } from "./layout.js";
import { type ArchivedRow, decodeRows } from "./parquet.js";
import { readPosition } from "./position.js";

/**
 * Rows of a table, each with its stream `sequence`; none for a run or table that is not archived. Files that no
 * position covers belong to a commit under way and are not read.
 */
export async function readArchive(directory: string, run: string, table: string): Promise<ArchivedRow[]> {
  const { streams } = await readPosition(directory);
  const rows: ArchivedRow[] = [];
  for (const { path, stream, to } of await dataFiles(directory, run, table)) {
    if (to > (streams[stream]?.sequence ?? 0)) continue;
    rows.push(...(await decodeRows(await readFile(path))));
  }
  return rows;
}

/** The bytes of an archived content. Rejects with ENOENT when it is not archived. */
export function readBlob(directory: string, run: string, sha256: string): Promise<Uint8Array> {
  return readFile(blobPath(directory, run, sha256));
}
