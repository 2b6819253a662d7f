/**
 * Owns where things are in an archive directory:
 *
 *   position.json                                   how far each stream is archived
 *   <run>/<table>/<STREAM>-<from>-<to>.parquet      rows of the messages with those sequences
 *   <run>/blobs/<first two hex>/<sha256>            contents by digest
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { subjectToken } from "@mortise/contracts";

/** Digits of a sequence in a file name, so that names sort as sequences do. */
const DIGITS = 15;
const DATA_FILE = /^([A-Z]+)-(\d+)-(\d+)\.parquet$/;

export interface Range {
  readonly stream: string;
  readonly from: number;
  readonly to: number;
}

export interface DataFile extends Range {
  readonly path: string;
}

export function dataPath(directory: string, run: string, table: string, range: Range): string {
  const [from, to] = [range.from, range.to].map((n) => String(n).padStart(DIGITS, "0"));
  return join(directory, subjectToken("run", run), table, `${range.stream}-${from}-${to}.parquet`);
}

export function blobPath(directory: string, run: string, sha256: string): string {
  return join(directory, subjectToken("run", run), "blobs", sha256.slice(0, 2), sha256);
}

/** The data files of one table of one run, in order. */
export async function dataFiles(directory: string, run: string, table: string): Promise<DataFile[]> {
  const folder = join(directory, subjectToken("run", run), table);
  const names = await namesIn(folder);
  return names.sort().flatMap((name) => {
    const match = DATA_FILE.exec(name);
    if (match === null) return [];
    return [{ path: join(folder, name), stream: match[1]!, from: Number(match[2]), to: Number(match[3]) }];
  });
}

export async function runsIn(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(emptyWhenAbsent);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** Names in a folder; none when it does not exist. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(emptyWhenAbsent);
}

function emptyWhenAbsent(error: NodeJS.ErrnoException): never[] {
  if (error.code === "ENOENT") return [];
  throw error;
}
