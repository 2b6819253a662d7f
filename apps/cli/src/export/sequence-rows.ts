/**
 * Owns the training rows of trials in two forms: lines of JSON, and a parquet file. Both hold the same rows in the same
 * order; a value that is missing is null there, never 0 (C10).
 */
import { packIds, packLogProbabilities } from "@mortise/capture";
import { parquetWriteBuffer } from "hyparquet-writer";
import type { ExportedTrial } from "./exported-trial.js";

/** Version of the rows. */
export const ROWS_SCHEMA = 1;

export interface SequenceRow {
  readonly schema: typeof ROWS_SCHEMA;
  readonly run: string;
  readonly set: string;
  readonly group: string;
  readonly task: string;
  readonly trial: string;
  readonly harness: string;
  readonly harness_version: string;
  readonly termination: string;
  readonly verdict: string | null;
  readonly reward: number | null;
  /** Of the trial, from 0. */
  readonly sequence: number;
  /** Last turn of the path. */
  readonly leaf: string;
  readonly ids: Int32Array;
  /** 1 where the token was sampled and is trainable in this row. */
  readonly mask: Uint8Array;
  /** NaN where missing or not sampled. */
  readonly log_probabilities: Float32Array;
  /** −1 for context. */
  readonly versions: Int32Array;
}

export function sequenceRows(trials: readonly ExportedTrial[]): SequenceRow[] {
  return trials.flatMap(({ run, fact, reward, harness, harnessVersion, assembled }) =>
    assembled.sequences.map(
      (row, sequence): SequenceRow => ({
        schema: ROWS_SCHEMA,
        run,
        set: fact.set,
        group: fact.group,
        task: fact.task,
        trial: fact.trial,
        harness,
        harness_version: harnessVersion,
        termination: fact.termination,
        verdict: fact.verdict ?? null,
        reward: reward ?? null,
        sequence,
        leaf: row.leaf,
        ids: row.ids,
        mask: row.mask,
        log_probabilities: row.logProbabilities,
        versions: row.versions,
      }),
    ),
  );
}

/** One line a row; log-probabilities are null where there are none, versions where the token is context. */
export function jsonLines(rows: readonly SequenceRow[]): string {
  return rows
    .map((row) =>
      JSON.stringify({
        ...row,
        ids: [...row.ids],
        mask: [...row.mask],
        log_probabilities: [...row.log_probabilities].map((value) => (Number.isNaN(value) ? null : value)),
        versions: [...row.versions].map((version) => (version < 0 ? null : version)),
      }),
    )
    .map((line) => `${line}\n`)
    .join("");
}

/**
 * Arrays are little-endian bytes: int32 ids and versions (−1 for context), uint8 mask, float32 log-probabilities (NaN
 * where there are none), as in the archive.
 */
export function parquetFile(rows: readonly SequenceRow[]): Uint8Array {
  const column = <T>(
    name: string,
    type: "INT32" | "DOUBLE" | "STRING" | "BYTE_ARRAY",
    of: (row: SequenceRow) => T,
  ) => ({
    name,
    type,
    data: rows.map(of),
  });
  const text = (name: Exclude<keyof SequenceRow, "schema" | "sequence" | "reward">) =>
    column(name, "STRING", (row) => row[name]);
  const columnData = [
    column("schema", "INT32", (row) => row.schema),
    ...(
      [
        "run",
        "set",
        "group",
        "task",
        "trial",
        "harness",
        "harness_version",
        "termination",
        "verdict",
      ] as const
    ).map(text),
    column("reward", "DOUBLE", (row) => row.reward),
    column("sequence", "INT32", (row) => row.sequence),
    text("leaf"),
    column("ids", "BYTE_ARRAY", (row) => packIds(row.ids)),
    column("mask", "BYTE_ARRAY", (row) => row.mask),
    column("log_probabilities", "BYTE_ARRAY", (row) => packLogProbabilities(row.log_probabilities)),
    column("versions", "BYTE_ARRAY", (row) => packIds(row.versions)),
  ];
  return new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: Math.max(rows.length, 1) }));
}
