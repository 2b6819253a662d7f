/**
 * Owns the result format `json-lines`: one JSON object a line, each with the nonce that the host gave the
 * runner on standard input before any graded code was loaded:
 *   {"nonce":"…","name":"adds","status":"passed","ms":0.4}      one per test
 *   {"nonce":"…","end":true,"tests":4}                          last
 * Other output is ignored, so graded code may print. A line that has a `status` or `end` field and another
 * nonce can only come from code that imitates the runner: it is reported as forged.
 */
import type { ReportedStatus, ReportedTest, TestReport } from "./report.js";

export const JSON_LINES_PARSER = "json-lines/1";

/** Longest line looked at, characters: graded code may print without bounds. */
const MAX_LINE_CHARACTERS = 65_536;
const STATUSES: ReadonlySet<string> = new Set(["passed", "failed", "error", "skipped"]);

/** Parses the standard output of a run. Never throws: what is no result is output. */
export function parseJsonLines(stdout: string, nonce: string): TestReport {
  const tests: ReportedTest[] = [];
  const forged: string[] = [];
  let endedAfter: number | undefined;
  for (const line of stdout.split("\n")) {
    const record = asRecord(line);
    if (record === undefined) continue;
    if (record.nonce !== nonce) {
      forged.push(line.slice(0, 200));
    } else if (record.end === true) {
      endedAfter = typeof record.tests === "number" ? record.tests : -1;
    } else {
      const test = asTest(record);
      if (test !== undefined) tests.push(test);
    }
  }
  return { tests, forged, isComplete: endedAfter === tests.length, parser: JSON_LINES_PARSER };
}

function asRecord(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{") || line.length > MAX_LINE_CHARACTERS) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) return undefined;
    const record = value as Record<string, unknown>;
    const looksLikeResult = (typeof record.name === "string" && "status" in record) || "end" in record;
    return looksLikeResult ? record : undefined;
  } catch {
    return undefined;
  }
}

function asTest(record: Record<string, unknown>): ReportedTest | undefined {
  const { name, status, ms } = record;
  if (typeof name !== "string" || typeof status !== "string" || !STATUSES.has(status)) return undefined;
  const test = { name, status: status as ReportedStatus };
  return typeof ms === "number" && Number.isFinite(ms) ? { ...test, durationMs: ms } : test;
}
