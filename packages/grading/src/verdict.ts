/**
 * Owns the rule from a test run to a verdict (DESIGN §7: fail closed). Does not run anything and does not
 * know how the run was made.
 *
 * V1  Only named results count: a zero exit code alone proves nothing.
 * V2  Every expected test must be reported passed, exactly once; a missing one is not passed.
 * V3  What failed outside the agent's influence is invalid(infra), never reward 0.
 * V4  A result that only an imitator can have printed is invalid(tamper), conclusively.
 */
import type { ReportedTest, TestReport } from "./report.js";

export type VerdictOutcome = "resolved" | "unresolved" | "invalid-infra" | "invalid-task" | "invalid-tamper";
export type TestVerdict = "passed" | "failed" | "error" | "skipped" | "missing";

/** How the command of a test run ended. */
export interface RunEnding {
  readonly exitCode: number;
  readonly signal: string;
  readonly timedOut: boolean;
  readonly outOfMemory: boolean;
  readonly outputTruncated: boolean;
}

export interface Judgement {
  readonly outcome: VerdictOutcome;
  /** 1 or 0; absent when invalid. */
  readonly reward?: number;
  readonly tests: readonly { name: string; status: TestVerdict; durationMs?: number }[];
  /** Share of expected tests that passed, in [0, 1]. */
  readonly passedShare: number;
  readonly reason: string;
  /** Of tampering: the evidence leaves no other explanation. */
  readonly conclusive: boolean;
}

/**
 * Judges one run against the names the task expects.
 * @param expected names of the hidden tests, without duplicates, at least one
 */
export function judge(expected: readonly string[], report: TestReport, ending: RunEnding): Judgement {
  const tests = settle(expected, report.tests);
  const passed = tests.filter((test) => test.status === "passed").length;
  const passedShare = expected.length === 0 ? 0 : passed / expected.length;
  const base = { tests, passedShare, conclusive: false };
  if (expected.length === 0) return { ...base, outcome: "invalid-task", reason: "the task expects no tests" };
  const forgery = forgeryIn(report);
  if (forgery !== undefined) return { ...base, outcome: "invalid-tamper", reason: forgery, conclusive: true };
  const failure = failureIn(report, ending, passed, expected.length);
  if (failure === undefined)
    return { ...base, outcome: "resolved", reward: 1, reason: "every expected test passed" };
  return { ...base, outcome: "unresolved", reward: 0, reason: failure };
}

function settle(expected: readonly string[], reported: readonly ReportedTest[]): Judgement["tests"] {
  const byName = new Map<string, ReportedTest>();
  for (const test of reported) {
    const earlier = byName.get(test.name);
    // A test reported twice has its worse result: passing after failing is not passing (V2).
    if (earlier === undefined || earlier.status === "passed") byName.set(test.name, test);
  }
  return expected.map((name) => {
    const test = byName.get(name);
    if (test === undefined) return { name, status: "missing" as const };
    return test.durationMs === undefined
      ? { name, status: test.status }
      : { name, status: test.status, durationMs: test.durationMs };
  });
}

function forgeryIn(report: TestReport): string | undefined {
  if (report.forged.length === 0) return undefined;
  return `${report.forged.length} result lines without the run's nonce, first: ${report.forged[0]}`;
}

function failureIn(
  report: TestReport,
  ending: RunEnding,
  passed: number,
  expected: number,
): string | undefined {
  if (ending.timedOut) return "the test run reached its time limit";
  if (ending.outOfMemory) return "the test run reached its memory limit";
  if (passed < expected) return `${passed} of ${expected} expected tests passed`;
  if (ending.outputTruncated) return "the output of the test run was cut at its limit";
  if (!report.isComplete) return "the test run did not report its end";
  if (ending.exitCode !== 0 || ending.signal !== "")
    return `the test run reported success and ended with ${ending.signal || `exit code ${ending.exitCode}`}`;
  return undefined;
}
