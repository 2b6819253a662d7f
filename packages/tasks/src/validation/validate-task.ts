/**
 * Owns what makes a task usable: the gold solution resolves every time, doing nothing does not.
 * Does not run anything: an executor is given (a real sandbox, or process-executor.ts).
 */
import { taskDigest } from "../harbor/digest.js";
import type { Task } from "../harbor/load-task.js";

export interface Execution {
  readonly task: Task;
  /** `gold` applies the task's solution before the tests, `noop` leaves the repository as it is. */
  readonly solution: "gold" | "noop";
  /** From 1. */
  readonly attempt: number;
}

export interface ExecutionResult {
  readonly outcome: "resolved" | "unresolved" | "invalid";
  /** Expected tests that did not pass. */
  readonly failed: readonly string[];
  /** Why, when `invalid`. */
  readonly reason?: string;
}

/** Runs one attempt in a fresh copy of the task's environment and grades it. */
export type Execute = (execution: Execution) => Promise<ExecutionResult>;

export interface TaskValidation {
  readonly id: string;
  readonly digest: string;
  readonly isValid: boolean;
  readonly gold: { readonly resolved: number; readonly attempts: number };
  readonly noop: { readonly resolved: boolean; readonly failed: readonly string[] };
  /** One sentence per reason the task is not valid. */
  readonly problems: readonly string[];
}

/** Gold attempts a task must resolve, all of them: fewer would let a flaky test pass. */
export const GOLD_ATTEMPTS = 3;

/** Validates one task with four executions. Rejects only when the executor rejects. */
export async function validateTask(task: Task, execute: Execute): Promise<TaskValidation> {
  const problems: string[] = [];
  let resolved = 0;
  if (task.solution === undefined)
    problems.push("solution/solve.sh is missing: the gold solution cannot run.");
  else {
    for (let attempt = 1; attempt <= GOLD_ATTEMPTS; attempt++) {
      const result = await execute({ task, solution: "gold", attempt });
      if (result.outcome === "resolved") resolved++;
      else problems.push(`gold attempt ${attempt} is ${describe(result)}.`);
    }
  }
  const noop = await execute({ task, solution: "noop", attempt: 1 });
  if (noop.outcome === "resolved") problems.push("doing nothing resolves it.");
  if (noop.outcome === "invalid") problems.push(`doing nothing is ${describe(noop)}.`);
  problems.push(...unexpectedNoop(task, noop));
  return {
    id: task.id,
    digest: taskDigest(task),
    isValid: problems.length === 0,
    gold: { resolved, attempts: task.solution === undefined ? 0 : GOLD_ATTEMPTS },
    noop: { resolved: noop.outcome === "resolved", failed: noop.failed },
    problems,
  };
}

/** Without a solution exactly the fail-to-pass tests must fail; anything else means the lists are wrong. */
function unexpectedNoop(task: Task, noop: ExecutionResult): string[] {
  const expected = task.tests.expected;
  if (expected === undefined || noop.outcome !== "unresolved") return [];
  const failed = new Set(noop.failed);
  return [
    ...expected.failToPass.filter((name) => !failed.has(name)).map((name) => `"${name}" passes unrepaired.`),
    ...expected.passToPass.filter((name) => failed.has(name)).map((name) => `"${name}" fails unrepaired.`),
  ];
}

function describe(result: ExecutionResult): string {
  const detail = result.reason ?? result.failed.join(", ");
  return detail === "" ? result.outcome : `${result.outcome} (${detail})`;
}
