/**
 * Owns the result format `tap`: the top-level points of a Test Anything Protocol stream, as `node --test`
 * and many other runners print it. TAP has no place for a nonce: a run graded this way can be imitated by
 * the code it tests, which is why the verdict says which parser was used.
 */
import type { ReportedStatus, ReportedTest, TestReport } from "./report.js";

export const TAP_PARSER = "tap/1";

const POINT = /^(not )?ok\b(?:\s+\d+)?(?:\s+-)?\s*(.*?)(?:\s+#\s*(SKIP|TODO)\b.*)?$/i;
const PLAN = /^1\.\.(\d+)/;

/** Parses the standard output of a run. Never throws; subtests (indented) belong to their parent's point. */
export function parseTap(stdout: string): TestReport {
  const tests: ReportedTest[] = [];
  let planned: number | undefined;
  for (const line of stdout.split("\n")) {
    const plan = PLAN.exec(line);
    if (plan !== null) planned = Number(plan[1]);
    const point = POINT.exec(line.trimEnd());
    if (point === null) continue;
    tests.push({ name: unescapeTap(point[2] ?? ""), status: statusOf(point[1], point[3]) });
  }
  return { tests, forged: [], isComplete: planned === tests.length, parser: TAP_PARSER };
}

function statusOf(not: string | undefined, directive: string | undefined): ReportedStatus {
  if (directive !== undefined) return "skipped";
  return not === undefined ? "passed" : "failed";
}

function unescapeTap(name: string): string {
  return name.replaceAll(/\\(#|\\)/g, "$1");
}
