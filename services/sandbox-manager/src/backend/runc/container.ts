/**
 * Owns one `runc run`: the command is the container's first process, runc stays in the foreground until it
 * ends. Turns exit, kill and the kernel's counters into an `Outcome`.
 * Does not build the root filesystem or the configuration (see sandbox.ts, config.ts).
 *
 * K1  The control group outlives the process (`--keep`), so evidence of a limit is read before it is removed.
 * K2  Killing the first process kills the PID namespace: no process of the command survives its end.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants as osConstants } from "node:os";
import path from "node:path";
import { NO_OUTPUT, OutputCollector } from "../output.js";
import type { Command, ExecResult, Outcome, Usage } from "../types.js";
import type { CgroupHost } from "./cgroup.js";
import { type Exit, type Launched, launch } from "./launch.js";
import { messagesOf } from "./runc-log.js";
import type { Starts } from "./starts.js";

/** runc is a short-lived Go program: collecting garbage costs more than the memory it would free. */
const RUNC_ENVIRONMENT = {
  PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin",
  GOGC: "off",
  GOMAXPROCS: "1",
};
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));
const SIGNAL_BASE = 128;
const KILL_AGAIN_MS = 200;
/** Last part of runc's own message that is kept as the reason of a refused start. */
const REASON_BYTES = 600;

export interface ContainerFacts {
  readonly runc: string;
  readonly id: string;
  /** Directory for this command's bundle, runc state, pid file and log; removed at the end. */
  readonly directory: string;
  readonly config: object;
  readonly cgroup: string;
  /** Of the sandbox, where its cpu limit is. */
  readonly sandboxCgroup: string;
  readonly cgroups: CgroupHost;
  readonly starts: Starts;
  readonly outputBytes: number;
}

type Ending = "timeout" | "cancelled" | "destroyed";

/** A running container; `result` never rejects for what the command did. */
export class Container {
  readonly #facts: ContainerFacts;
  readonly result: Promise<ExecResult>;
  readonly #throttledBefore: number | undefined;
  #ending: Ending | undefined;

  constructor(facts: ContainerFacts, command: Command) {
    this.#facts = facts;
    this.#throttledBefore = this.#throttledMs();
    mkdirSync(facts.directory, { recursive: true, mode: 0o700 });
    writeFileSync(path.join(facts.directory, "config.json"), JSON.stringify(facts.config), { mode: 0o600 });
    this.result = this.#run(command);
  }

  /** Of the command so far. Commands that run at once wait for the same cpu time: each reports all of that wait. */
  get usage(): Usage {
    const { cgroups, cgroup } = this.#facts;
    const throttledMs = this.#throttledMs();
    const since = this.#throttledBefore;
    return {
      ...cgroups.usage(cgroup),
      ...(throttledMs === undefined || since === undefined ? {} : { throttledMs: throttledMs - since }),
    };
  }

  /** Kills the whole tree; the first reason given is the one reported. */
  kill(ending: Ending): void {
    this.#ending ??= ending;
    const pid = this.#firstProcess();
    if (pid !== undefined) killQuietly(pid);
    this.#facts.cgroups.kill(this.#facts.cgroup);
  }

  async #run(command: Command): Promise<ExecResult> {
    let startedAt = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const stdout = new OutputCollector(this.#facts.outputBytes);
    const stderr = new OutputCollector(this.#facts.outputBytes);
    const abort = () => this.kill("cancelled");
    command.signal?.addEventListener("abort", abort, { once: true });
    if (command.signal?.aborted) this.#ending = "cancelled";
    // Its time begins when it is its turn: a busy host is no fault of the command's.
    const begin = () => {
      if (this.#ending !== undefined) return NOT_STARTED;
      startedAt = performance.now();
      timer = setTimeout(() => this.kill("timeout"), command.timeoutMs);
      return this.#launch(command, stdout, stderr);
    };
    try {
      const status = await this.#facts.starts.pass(begin, () => this.#firstProcess() !== undefined);
      const { usage } = this;
      return {
        outcome: this.#outcome(status, usage),
        stdout: status.error === undefined ? stdout.end() : NO_OUTPUT,
        stderr: stderr.end(),
        usage,
        wallMs: performance.now() - startedAt,
        isInsecure: false,
      };
    } finally {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", abort);
      await this.#cleanUp();
    }
  }

  #throttledMs(): number | undefined {
    return this.#facts.cgroups.usage(this.#facts.sandboxCgroup).throttledMs;
  }

  async #launch(command: Command, stdout: OutputCollector, stderr: OutputCollector): Promise<RuncStatus> {
    const { runc, id, directory } = this.#facts;
    let runcProcess: Launched;
    try {
      runcProcess = launch({
        argv: [
          ...([runc, "--root", path.join(directory, "runc"), "--log", path.join(directory, "log")] as const),
          ...["run", "--keep", "--bundle", directory, "--pid-file", path.join(directory, "pid"), id],
        ],
        environment: RUNC_ENVIRONMENT,
        stdin: command.stdin,
        onStdout: (chunk) => {
          stdout.add(chunk);
          command.onStdout?.(chunk);
        },
        onStderr: (chunk) => {
          stderr.add(chunk);
          command.onStderr?.(chunk);
        },
      });
    } catch (error) {
      return { code: null, signal: null, error: (error as Error).message };
    }
    // A kill that came before the first process existed found nothing to kill: it is repeated until the end.
    const again = setInterval(() => this.#ending !== undefined && this.kill(this.#ending), KILL_AGAIN_MS);
    try {
      return await runcProcess.exit;
    } finally {
      clearInterval(again);
    }
  }

  #outcome(status: RuncStatus, usage: Usage): Outcome {
    if (this.#ending === "destroyed") return { kind: "lost", reason: "the sandbox was destroyed" };
    if (this.#ending !== undefined) return { kind: this.#ending };
    if (status.error !== undefined) return { kind: "refused", reason: `runc did not start: ${status.error}` };
    // runc writes the pid file after the command's process is set up and before it is let go.
    if (this.#firstProcess() === undefined) return { kind: "refused", reason: this.#runcMessage() };
    if (status.code === null) return { kind: "lost", reason: `runc was ended by ${status.signal}` };
    if ((usage.oomKills ?? 0) > 0 && status.code !== 0)
      return { kind: "out-of-memory", kills: usage.oomKills! };
    const signal = SIGNAL_NAMES.get(status.code - SIGNAL_BASE);
    return signal === undefined ? { kind: "exited", code: status.code } : { kind: "signalled", signal };
  }

  #firstProcess(): number | undefined {
    const file = path.join(this.#facts.directory, "pid");
    return existsSync(file) ? Number(readFileSync(file, "utf8")) || undefined : undefined;
  }

  #runcMessage(): string {
    const file = path.join(this.#facts.directory, "log");
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    return messagesOf(text).slice(-REASON_BYTES) || "runc ended without a message";
  }

  async #cleanUp(): Promise<void> {
    await this.#facts.cgroups.remove(this.#facts.cgroup);
    rmSync(this.#facts.directory, { recursive: true, force: true });
  }
}

interface RuncStatus extends Exit {
  /** runc itself could not be started. */
  readonly error?: string;
}
const NOT_STARTED: RuncStatus = { code: null, signal: null };

function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself in between.
  }
}
