/**
 * Owns what makes a task usable: the gold solution resolves every time, doing nothing does not, and neither needs
 * a network. Does not run anything: an executor is given (a real sandbox, or process-executor.ts). Does not keep
 * results (validation-store.ts).
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
  /** Whether the tests ran without any network but loopback. */
  readonly isNetworkClosed: boolean;
  /** How results of this task are kept from being forged; absent where they were only read. */
  readonly protection?: Protection;
}

export interface Protection {
  /** The test runner that reports on a channel of the verifier's; `none` where only its output is read. */
  readonly channel: string;
  /** Hidden tests that are run again altered, so that they have to fail. */
  readonly alteredTests: number;
}

/** Runs one attempt in a fresh copy of the task's environment and grades it. */
export type Execute = (execution: Execution) => Promise<ExecutionResult>;

export interface TaskValidation {
  readonly id: string;
  readonly digest: string;
  readonly isValid: boolean;
  readonly gold: { readonly resolved: number; readonly attempts: number };
  readonly noop: {
    readonly resolved: boolean;
    readonly attempts: number;
    /** Expected tests that failed in the first attempt. */
    readonly failed: readonly string[];
  };
  /** Share of gold attempts that ended otherwise than most: 0 when all resolve or none does, 0.5 at most. */
  readonly flakeRate: number;
  /** Expected tests that passed in some gold attempts and not in others. */
  readonly flakyTests: readonly string[];
  /** Milliseconds of a gold attempt from start to verdict; absent without one. */
  readonly wallMs?: { readonly median: number; readonly max: number };
  /** Whether the gold solution was shown to resolve without a network, every time. */
  readonly isEgressFree: boolean;
  readonly protection?: Protection;
  /** One sentence per reason the task is not valid. */
  readonly problems: readonly string[];
}

export interface ValidateOptions {
  /** At least 1. */
  readonly goldAttempts?: number;
  /** At least 1. */
  readonly noopAttempts?: number;
  /** Monotonic milliseconds. */
  readonly now?: () => number;
}

/** Gold attempts a task must resolve, all of them: fewer would let a flaky test pass. */
export const GOLD_ATTEMPTS = 3;

interface TimedResult extends ExecutionResult {
  readonly wallMs: number;
}

/** Validates one task, four executions if nothing else is asked for. Rejects only when the executor rejects. */
export async function validateTask(
  task: Task,
  execute: Execute,
  { goldAttempts = GOLD_ATTEMPTS, noopAttempts = 1, now = () => performance.now() }: ValidateOptions = {},
): Promise<TaskValidation> {
  const run = async (solution: Execution["solution"], attempts: number) => {
    const results: TimedResult[] = [];
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const start = now();
      const result = await execute({ task, solution, attempt });
      results.push({ ...result, wallMs: now() - start });
    }
    return results;
  };
  const gold = await run("gold", task.solution === undefined ? 0 : goldAttempts);
  const noop = await run("noop", noopAttempts);
  const problems = [...goldProblems(task, gold), ...noop.flatMap((result) => noopProblems(task, result))];
  const resolved = gold.filter(({ outcome }) => outcome === "resolved").length;
  return {
    id: task.id,
    digest: taskDigest(task),
    isValid: problems.length === 0,
    gold: { resolved, attempts: gold.length },
    noop: {
      resolved: noop.some(({ outcome }) => outcome === "resolved"),
      attempts: noop.length,
      failed: noop[0]!.failed,
    },
    flakeRate: gold.length === 0 ? 0 : Math.min(resolved, gold.length - resolved) / gold.length,
    flakyTests: flakyTests(gold),
    ...wallTime(gold),
    isEgressFree:
      gold.length > 0 &&
      gold.every(({ outcome, isNetworkClosed }) => isNetworkClosed && outcome === "resolved"),
    ...protectionOf([...gold, ...noop]),
    problems: [...new Set(problems)],
  };
}

function goldProblems(task: Task, gold: readonly TimedResult[]): string[] {
  if (task.solution === undefined) return ["solution/solve.sh is missing: the gold solution cannot run."];
  return gold.flatMap((result, index) =>
    result.outcome === "resolved" ? [] : [`gold attempt ${index + 1} is ${describe(result)}.`],
  );
}

function noopProblems(task: Task, noop: ExecutionResult): string[] {
  if (noop.outcome === "resolved") return ["doing nothing resolves it."];
  if (noop.outcome === "invalid") return [`doing nothing is ${describe(noop)}.`];
  return unexpectedNoop(task, noop);
}

/** An attempt that is invalid says nothing of single tests. */
function flakyTests(gold: readonly TimedResult[]): string[] {
  const told = gold.filter(({ outcome }) => outcome !== "invalid");
  const failures = new Map<string, number>();
  for (const { failed } of told) for (const name of failed) failures.set(name, (failures.get(name) ?? 0) + 1);
  return [...failures].filter(([, count]) => count < told.length).map(([name]) => name);
}

function wallTime(gold: readonly TimedResult[]): Pick<TaskValidation, "wallMs"> {
  const times = gold.map(({ wallMs }) => Math.round(wallMs)).sort((a, b) => a - b);
  if (times.length === 0) return {};
  return { wallMs: { median: times[Math.floor((times.length - 1) / 2)]!, max: times.at(-1)! } };
}

function protectionOf(results: readonly TimedResult[]): Pick<TaskValidation, "protection"> {
  const told = results.flatMap(({ protection }) => protection ?? []);
  if (told.length === 0) return {};
  // Tests are altered only where a run would be resolved.
  const alteredTests = Math.max(...told.map((one) => one.alteredTests));
  return { protection: { channel: told[0]!.channel, alteredTests } };
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
