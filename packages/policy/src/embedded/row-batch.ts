/**
 * Owns laying out whole sequences as a flat batch: ids, positions, page tables, and which rows predict a token.
 * Sequences follow each other without padding; each has pages of its own.
 */
import { MortiseError } from "@mortise/contracts";
import type { TrainingRow } from "../model.js";
import type { Arena } from "./arena.js";
import { type AttentionPlan, PAGE_TOKENS } from "./network.js";

export interface SequenceSpan {
  /** First row of the sequence in the batch. */
  readonly start: number;
  readonly length: number;
  /** Address of its page table. */
  readonly table: number;
}

export interface RowBatch extends AttentionPlan {
  readonly sequences: readonly SequenceSpan[];
  readonly pageCount: number;
}

/** @throws MortiseError for an empty row or an id outside the vocabulary. */
export function checkRows(rows: readonly TrainingRow[], vocabSize: number): void {
  rows.forEach(({ ids }, row) => {
    if (ids.length === 0) throw invalidRow(row, "is empty");
    const bad = ids.findIndex((id) => id < 0 || id >= vocabSize);
    if (bad >= 0)
      throw invalidRow(row, `has id ${ids[bad]} at position ${bad}, the vocabulary has ${vocabSize}`);
  });
}

function invalidRow(row: number, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_CAPTURE_INVALID",
    message: `rows[${row}].ids ${what}.`,
    fix: "Use ids that were sampled with this checkpoint's tokenizer.",
    detail: { row },
  });
}

/** Allocates the plan in the arena's current scope. */
export function layOutRows(arena: Arena, rows: readonly TrainingRow[]): RowBatch {
  const total = rows.reduce((sum, { ids }) => sum + ids.length, 0);
  const pagesOf = ({ ids }: TrainingRow) => Math.ceil(ids.length / PAGE_TOKENS);
  const pageCount = rows.reduce((sum, row) => sum + pagesOf(row), 0);
  const table = arena.allocateInts(Array.from({ length: pageCount }, (_, page) => page));
  const ids = new Int32Array(total);
  const positions = new Int32Array(total);
  const slots = new Int32Array(total);
  const tables = new Int32Array(total);
  const counts = new Int32Array(total);
  const sequences: SequenceSpan[] = [];
  let start = 0;
  let page = 0;
  for (const row of rows) {
    const own = { start, length: row.ids.length, table: table + page * 4 };
    ids.set(row.ids, start);
    for (let t = 0; t < own.length; t++) {
      positions[start + t] = t;
      slots[start + t] = page * PAGE_TOKENS + t;
      counts[start + t] = t + 1;
    }
    tables.fill(own.table, start, start + own.length);
    sequences.push(own);
    start += own.length;
    page += pagesOf(row);
  }
  return {
    rows: total,
    sequences,
    pageCount,
    ids: arena.allocateInts(ids),
    positions: arena.allocateInts(positions),
    slots: arena.allocateInts(slots),
    tables: arena.allocateInts(tables),
    counts: arena.allocateInts(counts),
    maxCount: Math.max(...rows.map((row) => row.ids.length)),
  };
}

/** Splits rows into runs of at most `maxTokens` tokens; a longer row is a run of its own. Order is kept. */
export function splitRows(rows: readonly TrainingRow[], maxTokens: number): TrainingRow[][] {
  const runs: TrainingRow[][] = [];
  let tokens = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    if (tokens + row.ids.length > maxTokens) {
      runs.push([]);
      tokens = 0;
    }
    runs.at(-1)!.push(row);
    tokens += row.ids.length;
  }
  return runs;
}
