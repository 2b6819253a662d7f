/**
 * Owns the committed record of validating the bundled task family (demo/validation.json): which digests were
 * run, how and when. Does not validate.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { parseJsonFile } from "../harbor/expected-tests.js";

/** The record that ships with this package. */
export const DEMO_VALIDATION_PATH = fileURLToPath(new URL("../../demo/validation.json", import.meta.url));

const RecordFile = z.strictObject({
  schema: z.literal(1),
  /** Day of the runs, ISO 8601. */
  validatedOn: z.string(),
  /** How attempts were executed, for example "process". */
  executor: z.string(),
  node: z.string(),
  tasks: z.array(
    z.strictObject({
      id: z.string(),
      digest: z.string(),
      /** Gold attempts that resolved, of those made: "3/3". */
      gold: z.string(),
      noop: z.enum(["fails", "resolves"]),
    }),
  ),
});

export type ValidationRecord = z.infer<typeof RecordFile>;

export function readValidationRecord(path = DEMO_VALIDATION_PATH): ValidationRecord {
  return parseJsonFile(path, readFileSync(path, "utf8"), RecordFile);
}

/** Writes a record, its tasks sorted by id. */
export function writeValidationRecord(path: string, record: ValidationRecord): void {
  const tasks = record.tasks.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  writeFileSync(path, `${JSON.stringify({ ...record, tasks }, null, 2)}\n`);
}
