/**
 * Owns the write side of the archive: collects rows, commits them with the position that covers them.
 * Does not read streams and does not fetch contents.
 *
 * W1  A commit makes its data files durable first and the position after: what the position covers is there.
 * W2  A data file names the sequences of its commit. After a crash between the two, files beyond the position are
 *     removed at the start and written again: no message is missing, none is there twice.
 * W3  A commit that fails keeps its rows and is tried again; nothing newer is committed before it.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Row } from "../tables/table.js";
import { PARTIAL_SUFFIX, writeDurably } from "./durable-file.js";
import { dataFiles, dataPath, namesIn, runsIn } from "./layout.js";
import { encodeRows } from "./parquet.js";
import { type Position, readPosition, type StreamPosition, writePosition } from "./position.js";

/** Rows of one stream since its last commit. */
interface Pending {
  to: number;
  readonly byRunAndTable: Map<string, { run: string; rows: Row[] }>;
}

export class ArchiveWriter {
  readonly #directory: string;
  #position: Position;
  /** Being committed; kept until that succeeds (W3). */
  #committing = new Map<string, Pending>();
  #pending = new Map<string, Pending>();
  #nRows = 0;
  #tail: Promise<void> = Promise.resolve();

  private constructor(directory: string, position: Position) {
    this.#directory = directory;
    this.#position = position;
  }

  /** Opens an archive directory, which may not exist yet, and removes what no position covers (W2). */
  static async open(directory: string, tables: readonly string[]): Promise<ArchiveWriter> {
    const position = await readPosition(directory);
    await removeUncovered(directory, position, tables);
    return new ArchiveWriter(directory, position);
  }

  get position(): Position {
    return this.#position;
  }

  /** Rows collected and not yet being committed. */
  get nRows(): number {
    return this.#nRows;
  }

  /** Says which stream of that name this archive belongs to, and from where it goes on. */
  begin(stream: string, at: StreamPosition): void {
    this.#position = { ...this.#position, streams: { ...this.#position.streams, [stream]: at } };
  }

  /** Takes the message at `sequence`; without a row it only moves the position. */
  add(stream: string, sequence: number, run?: string, row?: Row): void {
    const pending = this.#pending.get(stream) ?? { to: 0, byRunAndTable: new Map() };
    this.#pending.set(stream, pending);
    pending.to = sequence;
    if (run === undefined || row === undefined) return;
    const key = `${run}/${row.table.name}`;
    const collected = pending.byRunAndTable.get(key) ?? { run, rows: [] };
    pending.byRunAndTable.set(key, collected);
    collected.rows.push(row);
    this.#nRows++;
  }

  /** Makes everything taken so far durable. Commits follow each other; rejects when one fails, and may be repeated. */
  commit(): Promise<void> {
    const done = this.#tail.then(async () => {
      await this.#commitOnce(); // one that failed before
      this.#committing = this.#pending;
      this.#pending = new Map();
      this.#nRows = 0;
      await this.#commitOnce();
    });
    this.#tail = done.catch(() => {});
    return done;
  }

  async #commitOnce(): Promise<void> {
    if (this.#committing.size === 0) return;
    const moved: Record<string, StreamPosition> = {};
    for (const [stream, { to, byRunAndTable }] of this.#committing) {
      const before = this.#position.streams[stream]!;
      const range = { stream, from: before.sequence + 1, to };
      for (const { run, rows } of byRunAndTable.values()) {
        const path = dataPath(this.#directory, run, rows[0]!.table.name, range);
        await writeDurably(path, encodeRows(rows)); // W1
      }
      moved[stream] = { ...before, sequence: to };
    }
    await writePosition(this.#directory, this.#moved(moved));
    this.#position = this.#moved(moved);
    this.#committing = new Map();
  }

  /** Another stream may have begun while files were written: what is known now is moved, not what was known then. */
  #moved(streams: Readonly<Record<string, StreamPosition>>): Position {
    return { ...this.#position, streams: { ...this.#position.streams, ...streams } };
  }
}

async function removeUncovered(
  directory: string,
  position: Position,
  tables: readonly string[],
): Promise<void> {
  for (const run of await runsIn(directory)) {
    for (const table of tables) {
      for (const { path, stream, to } of await dataFiles(directory, run, table)) {
        if (to > (position.streams[stream]?.sequence ?? 0)) await rm(path);
      }
      for (const name of await namesIn(join(directory, run, table))) {
        if (name.endsWith(PARTIAL_SUFFIX)) await rm(join(directory, run, table, name));
      }
    }
  }
}
