/**
 * Owns one sandbox of the process backend: a directory, and process groups that are killed as a whole.
 * Isolates nothing (see backend.ts). Paths that exist only inside a real sandbox are rewritten in arguments
 * and environment; a program that spells them itself will not find them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants as osConstants } from "node:os";
import path from "node:path";
import type { Patch } from "../../patch/patch.js";
import { diffDirectory } from "../../patch/snapshot.js";
import { packBelow, unpackBelow } from "../files.js";
import { NO_OUTPUT, OutputCollector } from "../output.js";
import { processIdentity } from "../owner.js";
import type { ModelRelay } from "../relay.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  MODEL_PORT,
  type Outcome,
  type Sandbox,
  type SandboxSpec,
  type Usage,
  WORKSPACE,
} from "../types.js";

type Ending = "timeout" | "cancelled" | "destroyed";
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));
const SIGNAL_BASE = 128;

export class ProcessSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #directory: string;
  readonly #endpoint: { relay: ModelRelay; port: number } | undefined;
  readonly #onDestroyed: () => void;
  readonly #running = new Map<ChildProcess, { ending?: Ending; readonly ended: Promise<void> }>();
  #state: "open" | "quiesced" | "destroyed" = "open";

  constructor(
    spec: SandboxSpec,
    directory: string,
    endpoint: { relay: ModelRelay; port: number } | undefined,
    onDestroyed: () => void,
  ) {
    this.id = spec.id;
    this.#spec = spec;
    this.#directory = directory;
    this.#endpoint = endpoint;
    this.#onDestroyed = onDestroyed;
    mkdirSync(path.join(directory, "groups"), { recursive: true });
  }

  /** Kills process groups an ended manager left; returns how many groups were signalled. */
  static killLeftovers(runDirectory: string): number {
    let killed = 0;
    for (const id of leftovers(runDirectory))
      for (const group of readdirSync(path.join(runDirectory, id, "groups")))
        if (isOurs(path.join(runDirectory, id, "groups", group), Number(group)))
          killed += killGroup(Number(group));
    return killed;
  }

  static countLeftovers(runDirectory: string): number {
    return leftovers(runDirectory).length;
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    const startedAt = performance.now();
    const stdout = new OutputCollector(this.#spec.limits.outputBytes);
    const stderr = new OutputCollector(this.#spec.limits.outputBytes);
    const outcome = command.signal?.aborted
      ? ({ kind: "cancelled" } as const)
      : await this.#spawn(command, stdout, stderr);
    const wallMs = performance.now() - startedAt;
    const refused = outcome.kind === "refused";
    return {
      outcome,
      stdout: refused ? NO_OUTPUT : stdout.end(),
      stderr: stderr.end(),
      usage: {},
      wallMs,
      isInsecure: true,
    };
  }

  putTar(directory: string, tar: Uint8Array): Promise<void> {
    return unpackBelow(this.#directory, this.#below(directory), tar, process.getuid!());
  }

  async getTar(directory: string): Promise<Uint8Array> {
    return packBelow(this.#directory, this.#below(directory));
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    await this.#killAll("cancelled");
    await this.#endpoint?.relay.close();
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    return diffDirectory(this.#spec.workspace, path.join(this.#directory, "workspace"), limits);
  }

  get isModelUnreachable(): boolean {
    return this.#endpoint?.relay.isUnreachable ?? false;
  }

  /** Nothing is measured: there is no boundary to measure at. */
  async stats(): Promise<Usage> {
    return {};
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    await this.#killAll("destroyed");
    await this.#endpoint?.relay.close();
    rmSync(this.#directory, { recursive: true, force: true });
    this.#onDestroyed();
  }

  #spawn(command: Command, stdout: OutputCollector, stderr: OutputCollector): Promise<Outcome> {
    const [program, ...parameters] = command.argv.map((argument) => this.#rewrite(argument));
    const child = spawn(program === "node" ? process.execPath : program!, parameters, {
      cwd: this.#rewrite(command.cwd ?? WORKSPACE),
      env: Object.fromEntries(Object.entries(command.environment).map(([k, v]) => [k, this.#rewrite(v)])),
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    let settle: () => void = () => undefined;
    const entry: { ending?: Ending; ended: Promise<void> } = {
      ended: new Promise((done) => (settle = done)),
    };
    this.#running.set(child, entry);
    const end = (ending: Ending) => {
      entry.ending ??= ending;
      if (child.pid !== undefined) killGroup(child.pid);
    };
    const abort = () => end("cancelled");
    const timer = setTimeout(() => end("timeout"), command.timeoutMs);
    command.signal?.addEventListener("abort", abort, { once: true });
    child.stdout.on("data", (chunk: Uint8Array) => {
      stdout.add(chunk);
      command.onStdout?.(chunk);
    });
    child.stderr.on("data", (chunk: Uint8Array) => stderr.add(chunk));
    child.stdin.on("error", () => undefined);
    child.stdin.end(command.stdin);
    child.on("spawn", () => this.#remember(child.pid!));
    // The command has ended, what it started in its group ends with it: output pipes close, `close` follows.
    child.on("exit", () => killGroup(child.pid!));
    return new Promise<Outcome>((resolve) => {
      child.on("error", (error) => resolve({ kind: "refused", reason: error.message }));
      child.on("close", (code, signal) => resolve(outcomeOf(entry.ending, code, signal)));
    }).finally(() => {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", abort);
      this.#running.delete(child);
      settle();
    });
  }

  async #killAll(ending: Ending): Promise<void> {
    const ended = [...this.#running].map(([child, entry]) => {
      entry.ending ??= ending;
      if (child.pid !== undefined) killGroup(child.pid);
      return entry.ended;
    });
    await Promise.all(ended);
  }

  /** So that the next manager can end what this one could not. */
  #remember(group: number): void {
    writeFileSync(path.join(this.#directory, "groups", String(group)), processIdentity(group) ?? "");
  }

  /** Paths and the model port as this host has them. */
  #rewrite(text: string): string {
    let rewritten = text;
    const places: [string, string][] = [
      ...this.#spec.mounts.map(({ target, tree }): [string, string] => [target, tree.directory]),
      [WORKSPACE, path.join(this.#directory, "workspace")],
    ];
    for (const [inside, outside] of places)
      rewritten = rewritten.replace(new RegExp(`(^|[=:\\s"'])${inside}(?=$|[/:\\s"'])`, "g"), `$1${outside}`);
    return this.#endpoint === undefined
      ? rewritten
      : rewritten.replaceAll(`127.0.0.1:${MODEL_PORT}`, `127.0.0.1:${this.#endpoint.port}`);
  }

  #below(directory: string): string {
    return directory === "/tmp" || directory.startsWith("/tmp/") || directory.startsWith(WORKSPACE)
      ? directory
      : `/outside${directory}`;
  }
}

function outcomeOf(ending: Ending | undefined, code: number | null, signal: string | null): Outcome {
  if (ending === "destroyed") return { kind: "lost", reason: "the sandbox was destroyed" };
  if (ending !== undefined) return { kind: ending };
  if (signal !== null) return { kind: "signalled", signal };
  const name = SIGNAL_NAMES.get((code ?? 0) - SIGNAL_BASE);
  return name === undefined ? { kind: "exited", code: code ?? 0 } : { kind: "signalled", signal: name };
}

function leftovers(runDirectory: string): string[] {
  if (!existsSync(runDirectory)) return [];
  return readdirSync(runDirectory).filter((id) => existsSync(path.join(runDirectory, id, "groups")));
}

/** A process group id may have been given to another program since: its start time tells. */
function isOurs(file: string, group: number): boolean {
  const identity = readFileSync(file, "utf8");
  return identity !== "" && identity === processIdentity(group);
}

function killGroup(group: number): number {
  try {
    process.kill(-group, "SIGKILL");
    return 1;
  } catch {
    return 0;
  }
}
