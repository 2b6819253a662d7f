/**
 * Owns one `mortise quickstart` as a process: its start, its pids, its output, its end.
 * Does not judge what the run recorded (records.ts) or left behind (remains.ts).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
const cli = join(root, "apps", "cli", "dist", "main.js");
const LOOK_INTERVAL_MS = 50;

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The last line of `--json`, as far as the tests read it. */
export interface Report {
  readonly steps: number;
  readonly tokens: Readonly<
    Record<"sampled" | "trained" | "baselineOnly" | "excluded" | "unconsumed", number>
  >;
  readonly staleness: { readonly bound: number; readonly max: number | null };
  readonly services: readonly { readonly name: string; readonly restarts: number }[];
}

export class QuickstartProcess {
  readonly runId: string;
  readonly #child: ChildProcess;
  readonly ended: Promise<Ended>;

  private constructor(child: ChildProcess, runId: string, ended: Promise<Ended>) {
    this.#child = child;
    this.runId = runId;
    this.ended = ended;
  }

  /** Resolves when the command has said which run it is. */
  static async start(args: readonly string[]): Promise<QuickstartProcess> {
    const child = spawn(process.execPath, [cli, "quickstart", "--json", ...args], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const printed = { stdout: "", stderr: "" };
    child.stdout.on("data", (chunk: Buffer) => {
      printed.stdout += chunk;
    });
    child.stderr.on("data", (chunk: Buffer) => {
      printed.stderr += chunk;
    });
    const ended = once(child, "close").then(([code]): Ended => ({ code: code as number | null, ...printed }));
    for (;;) {
      const [, runId] = /^run (\S+)$/m.exec(printed.stderr) ?? [];
      if (runId !== undefined) return new QuickstartProcess(child, runId, ended);
      if (child.exitCode !== null)
        throw new Error(`quickstart ended with ${child.exitCode}: ${printed.stderr}`);
      await sleep(LOOK_INTERVAL_MS);
    }
  }

  get directory(): string {
    return join(root, ".mortise", "runs", this.runId);
  }

  /** Sends a signal to the command itself, which is also the supervisor of the services. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Pid of one process of the run: of a service by its name, or of nats-server. */
  pidOf(name: string): number {
    const program = name === "nats-server" ? "nats-server" : join("services", name, "dist", "main.js");
    // The watcher beside each process has the same words on its command line, and a shell before them.
    const found = processesOf(this.directory).filter(
      ({ argv }) => argv[0] !== "/bin/sh" && argv.some((word) => word.endsWith(program)),
    );
    if (found.length !== 1) throw new Error(`${found.length} processes are ${name} of ${this.runId}`);
    return found[0]!.pid;
  }
}

/** The last line of standard output. */
export function reportOf({ stdout }: Ended): Report {
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Report;
}

/** Live processes whose command line names the directory or something in it. */
export function processesOf(directory: string): { pid: number; argv: string[] }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const argv = readFileSync(join("/proc", name, "cmdline"), "utf8").split("\0");
        const isOurs = argv.some((word) => word === directory || word.startsWith(`${directory}/`));
        return isOurs ? [{ pid: Number(name), argv }] : [];
      } catch {
        return []; // it ended while we looked
      }
    });
}
