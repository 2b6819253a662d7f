/** Owns a temporary directory for each test, and importing a file there. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach } from "vitest";
import {
  DEFAULT_LIMITS,
  type ImportOptions,
  type ImportReport,
  importTasks,
  openRows,
} from "../../src/import/index.js";
import { type Fields, writeJsonl } from "./rows.js";

export interface Workplace {
  readonly directory: string;
}

export function workplace(): Workplace {
  let directory = "";
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "mortise-import-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));
  return {
    get directory() {
      return directory;
    },
  };
}

export async function importFile(
  path: string,
  out: string,
  changes: Partial<ImportOptions> = {},
): Promise<ImportReport> {
  const options = {
    split: "train",
    limits: DEFAULT_LIMITS,
    skipInvalid: false,
    replace: false,
    allowExitCode: false,
  };
  return importTasks(await openRows(path), out, { ...options, ...changes });
}

/** Imports rows as JSONL into `out` of the workplace. */
export function importRows(
  place: Workplace,
  rows: readonly Fields[],
  changes: Partial<ImportOptions> = {},
): Promise<ImportReport> {
  return importFile(writeJsonl(place.directory, "rows.jsonl", rows), join(place.directory, "out"), changes);
}

export async function refusal(act: () => Promise<unknown>): Promise<MortiseError> {
  try {
    await act();
  } catch (error) {
    if (error instanceof MortiseError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}
