/**
 * Owns the shape of what a test run reported, before any judgement. Does not decide anything.
 */

export type ReportedStatus = "passed" | "failed" | "error" | "skipped";

/** One test as the run reported it. */
export interface ReportedTest {
  readonly name: string;
  readonly status: ReportedStatus;
  /** Milliseconds; absent when the format does not say. */
  readonly durationMs?: number;
}

/** What a parser found in the output of a test run. */
export interface TestReport {
  readonly tests: readonly ReportedTest[];
  /** Lines that have the form of a result and do not carry the run's nonce: somebody forged them. */
  readonly forged: readonly string[];
  /** The runner said that it reached its end. */
  readonly isComplete: boolean;
  /** Name and version of the parser; a verdict keeps it, so that a log can be graded again. */
  readonly parser: string;
}
