/**
 * Owns executing a task's solution and tests as plain child processes in a temporary copy of its repository.
 * Gives no isolation but, where the host allows it, that of the network: for task sets whose code is trusted, such
 * as the bundled one. Sandboxed validation is the caller's executor.
 */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { judge, parseReport, type RunEnding, type TestReport } from "@mortise/grading";
import type { ExpectedTests } from "../harbor/expected-tests.js";
import type { Task } from "../harbor/load-task.js";
import { gradeTaskLog } from "./grade-task-log.js";
import type { Execute, ExecutionResult } from "./validate-task.js";

const OUTPUT_LIMIT_BYTES = 1 << 20;

/** A namespace with a loopback device and no other; `$0` is the script. */
const WITHOUT_NETWORK = [
  "unshare",
  "--map-root-user",
  "--net",
  "sh",
  "-c",
  'ip link set lo up 2> /dev/null; exec sh "$0"',
];

/** Runs `solution/solve.sh` (for gold) and `tests/test.sh` in the copy; needs sh, and node on PATH for node tests. */
export const executeInProcess: Execute = (execution) => executeBehind(["sh"], execution, false);

/** As `executeInProcess`, without any network but loopback. Only where `canCloseNetwork()`. */
export const executeWithoutNetwork: Execute = (execution) => executeBehind(WITHOUT_NETWORK, execution, true);

/** Whether this host lets this user make a network namespace. */
export function canCloseNetwork(): boolean {
  const [command, ...args] = WITHOUT_NETWORK.slice(0, -3) as [string, ...string[]];
  return spawnSync(command, [...args, "true"], { stdio: "ignore" }).status === 0;
}

async function executeBehind(
  launcher: readonly string[],
  { task, solution }: Parameters<Execute>[0],
  isNetworkClosed: boolean,
): Promise<ExecutionResult> {
  return { ...(await outcomeBehind(launcher, task, solution)), isNetworkClosed };
}

type Outcome = Omit<ExecutionResult, "isNetworkClosed">;

async function outcomeBehind(
  launcher: readonly string[],
  task: Task,
  solution: "gold" | "noop",
): Promise<Outcome> {
  const { repository, env } = task.environment;
  const { expected } = task.tests;
  if (repository === undefined) return invalid("it has no environment/repository to copy");
  if (expected === undefined) return invalid("it has no tests/expected.json");
  const workspace = await mkdtemp(join(tmpdir(), "mortise-task-"));
  try {
    await cp(repository, workspace, { recursive: true });
    const run = (script: string, extra: Variables, input: string) =>
      runScript(launcher, script, {
        workspace,
        input,
        env: { ...env, ...extra },
        timeoutSec: task.verifier.timeoutSec,
      });
    if (solution === "gold" && task.solution !== undefined) {
      const solved = await run(task.solution.script, task.solution.env, "");
      if (solved.exitCode !== 0) return invalid(`solve.sh ended with ${solved.exitCode}: ${solved.errors}`);
    }
    const nonce = randomBytes(16).toString("hex");
    const tested = await run(task.tests.script, task.verifier.env, `${nonce}\n`);
    if (tested.exitCode === 127) return invalid(`test.sh found no command: ${tested.errors}`);
    if (expected.format === "log")
      return gradeTaskLog(task, expected, { ...tested, stdout: new TextEncoder().encode(tested.output) });
    return resultOf(expected, parseReport(expected.format, tested.output, nonce), tested);
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

function resultOf(expected: ExpectedTests, report: TestReport, ending: RunEnding): Outcome {
  const judgement = judge([...expected.failToPass, ...expected.passToPass], report, ending);
  const failed = judgement.tests.filter((test) => test.status !== "passed").map((test) => test.name);
  const { outcome, reason } = judgement;
  if (outcome === "resolved" || outcome === "unresolved") return { outcome, failed };
  return { outcome: "invalid", failed, reason: `${outcome}: ${reason}` };
}

function invalid(reason: string): Outcome {
  return { outcome: "invalid", failed: [], reason };
}

type Variables = Readonly<Record<string, string>>;

interface ScriptRun {
  readonly workspace: string;
  /** Standard input. */
  readonly input: string;
  readonly env: Variables;
  readonly timeoutSec: number;
}

type ScriptEnd = RunEnding & { readonly output: string; readonly errors: string };

function runScript(launcher: readonly string[], script: string, run: ScriptRun): Promise<ScriptEnd> {
  const [command, ...args] = launcher as [string, ...string[]];
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args, script], {
      cwd: run.workspace,
      env: { PATH: process.env.PATH ?? "", ...run.env },
      stdio: ["pipe", "pipe", "pipe"],
      timeout: run.timeoutSec * 1000,
      killSignal: "SIGKILL",
    });
    const kept = { stdout: "", stderr: "" };
    let outputTruncated = false;
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (chunk: string) => {
        if (kept[stream].length < OUTPUT_LIMIT_BYTES) kept[stream] += chunk;
        else outputTruncated = true;
      });
    }
    // A script that does not read its input may be gone before it is written.
    child.stdin.on("error", () => undefined);
    child.stdin.end(run.input);
    child.on("error", reject);
    child.on("close", (exitCode, signal) => {
      resolve({
        exitCode: exitCode ?? -1,
        signal: signal ?? "",
        timedOut: child.killed,
        outOfMemory: false,
        outputTruncated,
        output: kept.stdout,
        errors: kept.stderr.trim(),
      });
    });
  });
}
