/**
 * Owns grading one run of a task whose tests print a log (`format: "log"`): the log against the record in
 * tests/config.json. Does not run the tests; the rules from a log to a verdict are packages/grading's.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LogGrader, type RunEnding, readRecord } from "@mortise/grading";
import type { ExpectedTests } from "../harbor/expected-tests.js";
import type { Task } from "../harbor/load-task.js";
import type { ExecutionResult } from "./validate-task.js";

export interface LoggedRun extends RunEnding {
  /** Standard output: test.sh puts both outputs there, in the order they were written. */
  readonly stdout: Uint8Array;
}

/** Throws MORTISE_TASK_RECORD for a record that cannot be graded. */
export function gradeTaskLog(
  task: Task,
  expected: Extract<ExpectedTests, { format: "log" }>,
  run: LoggedRun,
): Omit<ExecutionResult, "isNetworkClosed"> {
  const path = join(task.tests.directory, "config.json");
  const record = readRecord(JSON.parse(readFileSync(path, "utf8")), path, { parser: expected.parser });
  if (run.timedOut) return invalid("the test run reached its time limit");
  if (run.outOfMemory) return invalid("the test run reached its memory limit");
  if (run.outputTruncated) return invalid("the output of the test run was cut at its limit");
  const grader = new LogGrader({ ...record, needsMarks: true });
  grader.write(new TextDecoder().decode(run.stdout));
  const { verdict, failToPass, passToPass, reasons } = grader.end();
  const failed = [...failToPass.failed, ...passToPass.failed];
  if (verdict === "resolved" || verdict === "unresolved") return { outcome: verdict, failed };
  return { outcome: "invalid", failed, reason: `${verdict}: ${reasons.join("; ")}` };
}

function invalid(reason: string): Omit<ExecutionResult, "isNetworkClosed"> {
  return { outcome: "invalid", failed: [], reason };
}
