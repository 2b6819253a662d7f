/**
 * Owns one run of a harness as a process: its files written, its own environment and nothing else, its whole
 * process group ended afterwards.
 */
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Launch, ProcessEnd } from "@mortise/harness";

/** The end of what was said is kept: harnesses may print whole conversations. */
const OUTPUT_CHARACTERS = 200_000;

export interface HarnessRun extends ProcessEnd {
  readonly isTimedOut: boolean;
  readonly ms: number;
}

export interface RunOptions {
  readonly cwd: string;
  readonly timeoutMs: number;
  /** Aborting ends the harness and rejects with the reason. */
  readonly signal: AbortSignal;
}

export async function runHarness(
  launch: Launch,
  { cwd, timeoutMs, signal }: RunOptions,
): Promise<HarnessRun> {
  signal.throwIfAborted();
  for (const file of launch.files) {
    await mkdir(dirname(file.path), { recursive: true });
    await writeFile(file.path, file.content);
  }
  const started = performance.now();
  const [program, ...args] = launch.argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env: launch.environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    let stdout = "";
    let stderr = "";
    let isTimedOut = false;
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout = (stdout + chunk).slice(-OUTPUT_CHARACTERS);
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = (stderr + chunk).slice(-OUTPUT_CHARACTERS);
    });
    const timer = setTimeout(() => {
      isTimedOut = true;
      endGroup(child.pid);
    }, timeoutMs);
    const interrupt = () => endGroup(child.pid);
    signal.addEventListener("abort", interrupt, { once: true });
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", interrupt);
    };
    child.once("error", (error) => {
      settle();
      reject(error);
    });
    // A background process of the harness may hold its pipes open: its exit is the end.
    child.once("exit", (code) => {
      settle();
      setImmediate(() => {
        endGroup(child.pid);
        child.stdout.destroy();
        child.stderr.destroy();
        if (signal.aborted) reject(signal.reason);
        else
          resolve({
            exitCode: code ?? undefined,
            stdout,
            stderr,
            isTimedOut,
            ms: performance.now() - started,
          });
      });
    });
  });
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
