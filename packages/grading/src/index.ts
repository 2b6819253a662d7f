/**
 * Owns grading without I/O: parsers of test output and the rule from results to a verdict. To add a result
 * format, write a parser beside json-lines.ts and name it in `parseReport`.
 */
import { parseJsonLines } from "./json-lines.js";
import type { TestReport } from "./report.js";
import { parseTap } from "./tap.js";

export * from "./json-lines.js";
export * from "./report.js";
export * from "./tap.js";
export * from "./verdict.js";

export const RESULT_FORMATS = ["json-lines", "tap"] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** Parses the output of a run in the format the task names. */
export function parseReport(format: ResultFormat, stdout: string, nonce: string): TestReport {
  return format === "tap" ? parseTap(stdout) : parseJsonLines(stdout, nonce);
}
