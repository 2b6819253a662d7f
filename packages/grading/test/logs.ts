/** Owns building records and logs for tests: what an evaluation script prints around the output of tests. */
import { type Grade, type GradingRecord, gradeLog, readRecord } from "../src/index.js";
import { Observations } from "../src/results/observations.js";

export const START = "+ : '>>>>> Start Test Output'";
export const END = "+ : '>>>>> End Test Output'";

export interface RecordFields {
  readonly failToPass?: readonly string[];
  readonly passToPass?: readonly string[];
  readonly [field: string]: unknown;
}

/** A record read by the named parser. */
export function recordFor(
  parser: string,
  { failToPass = [], passToPass = [], ...fields }: RecordFields,
): GradingRecord {
  const record = { instance_id: "o__r-1", repo: "o/r", version: "1.0", log_parser: parser, ...fields };
  return readRecord({ ...record, FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass }, "test");
}

/** The log of a whole evaluation script. */
export function logOf(output: readonly string[], exitCode?: number): string {
  const lines = [
    "+ cd /testbed",
    "+ git status",
    "On branch main",
    START,
    "+ the test command",
    ...output,
    END,
  ];
  if (exitCode !== undefined)
    lines.push(`+ echo '>>>>> Test Exit Code: ${exitCode}'`, `>>>>> Test Exit Code: ${exitCode}`);
  return [...lines, "+ git checkout abc t.py", "Updated 1 path from def", ""].join("\n");
}

/** What a finished pytest session prints around its short summary. */
export function sessionOf(summary: readonly string[], counts: string): readonly string[] {
  return [
    "============================= test session starts ==============================",
    "platform linux -- Python 3.9.20, pytest-8.3.4, pluggy-1.5.0",
    "collected 2 items",
    "",
    "t.py ..                                                                  [100%]",
    "=========================== short test summary info ============================",
    ...summary,
    `============================== ${counts} in 0.12s ===============================`,
  ];
}

export function gradeOf(parser: string, fields: RecordFields, log: string): Grade {
  return gradeLog(recordFor(parser, fields), log);
}

/** The per-test map a parser makes of some lines, as the record's test would find it. */
export function mapOf(
  parser: string,
  lines: readonly string[],
  expected: readonly string[] = [],
): Record<string, string> {
  const definition = recordFor(parser, { failToPass: ["x"] }).parser;
  const into = new Observations();
  const reader = definition.create(into, { instance: "o__r-1", expected: new Set(expected) });
  for (const line of lines) reader.line(line);
  reader.end?.();
  return Object.fromEntries(into.tests.entries());
}
