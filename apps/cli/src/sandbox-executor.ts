/**
 * Owns executing a task's gold solution or nothing, and its tests, in a fresh sandbox of a running
 * sandbox-manager. Does not judge tasks (packages/tasks) and does not read test output (packages/grading).
 */
import { randomBytes } from "node:crypto";
import { MortiseError, type SandboxService } from "@mortise/contracts";
import { judge, parseReport } from "@mortise/grading";
import { type Client, retry } from "@mortise/kernel";
import { type Execute, gradeTaskLog, taskDigest } from "@mortise/tasks";

const SANDBOX_ALLOWANCE_MS = 30_000;
/** A manager that is away for a moment says nothing about the task. */
const RETRIES = {
  attempts: 15,
  baseMs: 500,
  maxMs: 5_000,
  isRetryable: (error: unknown) => error instanceof MortiseError && error.disposition === "retry",
};

/**
 * An executor for `validateTask`. `manager` is asked for at each attempt; `run` names the run in its records;
 * `signal` ends the waiting for a manager that is away.
 */
export function executeInSandbox(
  manager: () => Client<typeof SandboxService>,
  run: string,
  signal: AbortSignal,
): Execute {
  return async ({ task, solution, attempt }) => {
    const { expected } = task.tests;
    // The manager gives a sandbox the network its task asks for, or fails.
    const isNetworkClosed = task.verifier.network.mode === "no-network";
    const invalid = (reason: string, failed: readonly string[] = []) => ({
      outcome: "invalid" as const,
      failed,
      reason,
      isNetworkClosed,
    });
    if (expected === undefined) return invalid("it has no tests/expected.json");
    const nonce = randomBytes(16).toString("hex");
    const timeoutMs = task.verifier.timeoutSec * 1000;
    const runOnce = () =>
      manager().runOnce(
        {
          run,
          trial: `validate-${task.id}-${solution}-${attempt}`,
          task: { id: task.id, digest: taskDigest(task) },
          argv: ["/bin/sh", "/tests/test.sh"],
          environment: task.verifier.env,
          withTests: true,
          withSolution: solution === "gold",
          timeoutMs,
          stdin: new TextEncoder().encode(`${nonce}\n`),
        },
        { deadlineMs: timeoutMs + SANDBOX_ALLOWANCE_MS },
      );
    const ran = await retry(runOnce, { ...RETRIES, signal });
    if (ran.failureCode !== "") return invalid(`${ran.failureCode}: ${ran.failureReason}`);
    if (expected.format === "log") return { ...gradeTaskLog(task, expected, ran), isNetworkClosed };
    const report = parseReport(expected.format, new TextDecoder().decode(ran.stdout), nonce);
    const judgement = judge([...expected.failToPass, ...expected.passToPass], report, ran);
    const failed = judgement.tests.filter(({ status }) => status !== "passed").map(({ name }) => name);
    if (judgement.outcome === "resolved" || judgement.outcome === "unresolved")
      return { outcome: judgement.outcome, failed, isNetworkClosed };
    return invalid(`${judgement.outcome}: ${judgement.reason}`, failed);
  };
}
