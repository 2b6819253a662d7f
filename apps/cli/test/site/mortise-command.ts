/** Owns running the built command line for tests of sites, and what it leaves behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

const LOOK_INTERVAL_MS = 50;

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command under way. */
export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  stderr(): string;
}

export function start(args: readonly string[], environment: Record<string, string> = {}): Started {
  const { NATS_URL: _, MORTISE_SITE: __, ...inherited } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...inherited, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve({ status, stdout, stderr }));
  });
  return { child, ended, stderr: () => stderr };
}

export function mortise(args: readonly string[], environment?: Record<string, string>): Promise<Ended> {
  return start(args, environment).ended;
}

/** Resolves when a command has said something on standard error; rejects when it ended before. */
export async function said({ ended, stderr }: Started, words: string): Promise<void> {
  let hasEnded = false;
  void ended.then(() => {
    hasEnded = true;
  });
  while (!stderr().includes(words)) {
    if (hasEnded) throw new Error(`it ended before it said "${words}": ${stderr()}`);
    await sleep(LOOK_INTERVAL_MS);
  }
}

/** The object `--json` prints last. */
export function resultOf({ stdout, stderr }: Ended) {
  const last = stdout.trimEnd().split("\n").at(-1);
  if (!last) throw new Error(`nothing was printed; standard error: ${stderr}`);
  return JSON.parse(last);
}

/** Command lines of live processes that name a directory. Linux only; elsewhere nothing is known. */
export function processesNaming(directory: string): string[] {
  if (!existsSync("/proc/self/cmdline")) return [];
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.includes(directory) ? [line] : [];
    } catch {
      return [];
    }
  });
}

/** Mounts below a directory. */
export function mountsBelow(directory: string): string[] {
  if (!existsSync("/proc/self/mountinfo")) return [];
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(directory));
}
