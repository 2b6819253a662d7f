/** Owns the `mortise` command as a process: its start, its output, its end, the processes below it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
const cli = join(root, "apps", "cli", "dist", "main.js");

export interface Ended {
  readonly code: number | null;
  /** The last line of standard output, as `--json` has it. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever a command says; each test knows its own
  readonly json: any;
  readonly stderr: string;
}

export class Mortise {
  readonly #child: ChildProcess;
  readonly ended: Promise<Ended>;
  stderr = "";

  constructor(args: readonly string[]) {
    const child = spawn(process.execPath, [cli, ...args, "--json"], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.stderr += chunk;
    });
    this.#child = child;
    this.ended = once(child, "close").then(([code]): Ended => {
      const last = stdout.trim().split("\n").at(-1) ?? "";
      return {
        code: code as number | null,
        json: last === "" ? undefined : JSON.parse(last),
        stderr: this.stderr,
      };
    });
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

export function mortise(...args: readonly string[]): Promise<Ended> {
  return new Mortise(args).ended;
}

/** Pid of the scheduler of one run, by its run file. Linux only. */
export function schedulerOf(runFile: string): number {
  const found = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const argv = readFileSync(join("/proc", pid, "cmdline"), "utf8").split("\0");
        // The watcher beside each process has the same words on its command line, and a shell before them.
        return (
          argv[0] !== "/bin/sh" && argv.includes(runFile) && argv.some((word) => word.includes("/scheduler/"))
        );
      } catch {
        return false; // it ended while we looked
      }
    });
  if (found.length !== 1) throw new Error(`${found.length} processes are the scheduler of ${runFile}`);
  return Number(found[0]);
}
