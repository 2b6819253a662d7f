/**
 * Owns the surface of grading without I/O: a record and a log, or a runner's own results, to a verdict.
 *
 * Logs of data sets: `readRecord`, `gradeLog` or `LogGrader`. To add a parser, write one beside its family in
 * parsers/ and export it from the family's index.
 * Bundled tasks: `parseReport` reads their results (json-lines.ts, tap.ts), `judge` decides (verdict.ts).
 */
import { parseJsonLines } from "./json-lines.js";
import type { TestReport } from "./report.js";
import { parseTap } from "./tap.js";

export * from "./grade.js";
export * from "./json-lines.js";
export { PARSER_ALIASES, PARSERS, parserLabel } from "./parsers/registry.js";
export { REPOSITORY_PARSERS } from "./parsers/repositories.js";
export type { ParserDefinition } from "./parsers/types.js";
export * from "./record/record.js";
export { readTestList } from "./record/test-list.js";
export * from "./report.js";
export * from "./results/status.js";
export { TestMap } from "./results/test-map.js";
export { type Grade, judgeResults, type LogVerdict, type SplitList } from "./rules.js";
export * from "./tap.js";
export * from "./verdict.js";

export const RESULT_FORMATS = ["json-lines", "tap"] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];

/** Parses the output of a run in the format the task names. */
export function parseReport(format: ResultFormat, stdout: string, nonce: string): TestReport {
  return format === "tap" ? parseTap(stdout) : parseJsonLines(stdout, nonce);
}
