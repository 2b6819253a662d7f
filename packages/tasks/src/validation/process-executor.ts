/**
 * Owns executing a task's solution and tests as plain child processes in a temporary copy of its repository.
 * Gives no isolation: for task sets whose code is trusted, such as the bundled one. Sandboxed validation is the
 * caller's executor.
 */
import { spawn } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Task } from "../harbor/load-task.js";
import type { Execute, ExecutionResult } from "./validate-task.js";

const OUTPUT_LIMIT_BYTES = 1 << 20;

/** Runs `solution/solve.sh` (for gold) and `tests/test.sh` with WORKSPACE set to the copy; needs sh and node on PATH. */
export const executeInProcess: Execute = async ({ task, solution }) => {
  const { repository } = task.environment;
  const expected = task.tests.expected;
  if (repository === undefined) return invalid("it has no environment/repository to copy");
  if (expected === undefined) return invalid("it has no tests/expected.json");
  const workspace = await mkdtemp(join(tmpdir(), "mortise-task-"));
  try {
    await cp(repository, workspace, { recursive: true });
    if (solution === "gold" && task.solution !== undefined) {
      const solved = await runScript(task.solution.script, workspace, task, task.solution.env);
      if (solved.exitCode !== 0) return invalid(`solve.sh ended with ${solved.exitCode}: ${solved.errors}`);
    }
    const tested = await runScript(task.tests.script, workspace, task, task.verifier.env);
    if (tested.exitCode !== 0) return invalid(`test.sh ended with ${tested.exitCode}: ${tested.errors}`);
    const passed = passedNames(tested.output);
    const failed = [...expected.failToPass, ...expected.passToPass].filter((name) => !passed.has(name));
    return { outcome: failed.length === 0 ? "resolved" : "unresolved", failed };
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
};

function invalid(reason: string): ExecutionResult {
  return { outcome: "invalid", failed: [], reason };
}

/** Names whose only result line says `passed`; a repeated name is a contradiction and counts as not passed. */
function passedNames(output: string): Set<string> {
  const passed = new Set<string>();
  const seen = new Set<string>();
  for (const line of output.split("\n")) {
    if (!line.startsWith("{")) continue;
    const { name, status } = JSON.parse(line) as { name: string; status: string };
    if (status === "passed" && !seen.has(name)) passed.add(name);
    else passed.delete(name);
    seen.add(name);
  }
  return passed;
}

interface ScriptEnd {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

function runScript(
  script: string,
  workspace: string,
  task: Task,
  extra: Readonly<Record<string, string>>,
): Promise<ScriptEnd> {
  return new Promise((resolve, reject) => {
    const child = spawn("sh", [script], {
      cwd: workspace,
      env: { PATH: process.env.PATH ?? "", ...task.environment.env, ...extra, WORKSPACE: workspace },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: task.verifier.timeoutSec * 1000,
      killSignal: "SIGKILL",
    });
    const kept = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (chunk: string) => {
        if (kept[stream].length < OUTPUT_LIMIT_BYTES) kept[stream] += chunk;
      });
    }
    child.on("error", reject);
    child.on("close", (exitCode) => resolve({ exitCode, output: kept.stdout, errors: kept.stderr.trim() }));
  });
}
