/**
 * Owns one flattened root while an agent works in it: commands with it as their root, files in and out, the change.
 *
 * Not a boundary: the network is this machine's, nothing but time and output is bounded, and root inside could leave.
 * Whoever needs one gives every invocation a machine of its own, or uses runc.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { constants as osConstants } from "node:os";
import path from "node:path";
import {
  type Command,
  type DiffLimits,
  diffDirectory,
  type ExecResult,
  type Outcome,
  OutputCollector,
  type Patch,
  packBelow,
  resolveDirectory,
  type SandboxUser,
  type Tree,
  USER_IDS,
  type Usage,
  unpackBelow,
} from "@mortise/sandbox-manager";
import { killWithin } from "./processes.js";
import type { RootTools, TreeMount } from "./tools.js";

/** A status above this one stands for a signal, as shells write it. */
const SIGNAL_BASE = 128;
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));

export interface ChrootFacts {
  /** Real path, whole and dressed. */
  readonly root: string;
  readonly workdir: string;
  readonly workspace: Tree;
  readonly trees: readonly TreeMount[];
  readonly outputBytes: number;
  readonly tools: RootTools;
}

export class ChrootSandbox {
  readonly #facts: ChrootFacts;
  #state: "open" | "quiesced" | "destroyed" = "open";

  constructor(facts: ChrootFacts) {
    this.#facts = facts;
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`the place is ${this.#state}`);
    const startedAt = performance.now();
    const kept = Math.min(this.#facts.outputBytes, command.outputBytes ?? this.#facts.outputBytes);
    const stdout = new OutputCollector(kept);
    const stderr = new OutputCollector(kept);
    const outcome: Outcome = command.signal?.aborted
      ? { kind: "cancelled" }
      : await this.#run(command, stdout, stderr);
    return {
      outcome,
      stdout: stdout.end(),
      stderr: stderr.end(),
      usage: {},
      wallMs: performance.now() - startedAt,
      isInsecure: true,
    };
  }

  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser = "agent"): Promise<void> {
    await unpackBelow(this.#facts.root, directory, tar, USER_IDS[owner]);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    return packBelow(this.#facts.root, directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    await killWithin(this.#facts.root);
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a place where nothing runs any more");
    const { root, workdir, workspace } = this.#facts;
    return diffDirectory(workspace, resolveDirectory(root, workdir.slice(1)), limits);
  }

  /** Nothing is measured: there is no boundary to measure at. */
  async stats(): Promise<Usage> {
    return {};
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    await killWithin(this.#facts.root);
    rmSync(path.dirname(this.#facts.root), { recursive: true, force: true });
  }

  async #run(command: Command, stdout: OutputCollector, stderr: OutputCollector): Promise<Outcome> {
    const { root, workdir, trees, tools } = this.#facts;
    const [program, ...parameters] = tools.commandLine({
      root,
      cwd: command.cwd ?? workdir,
      uid: USER_IDS[command.user ?? "agent"],
      trees,
      argv: command.argv,
    });
    const child = spawn(program!, parameters, {
      env: { ...command.environment },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    child.stdout.on("data", (chunk: Uint8Array) => stdout.add(chunk));
    child.stderr.on("data", (chunk: Uint8Array) => stderr.add(chunk));
    let ending: "timeout" | "cancelled" | undefined;
    const end = (why: "timeout" | "cancelled") => {
      ending ??= why;
      killGroup(child);
      void killWithin(root).catch(() => undefined);
    };
    const abort = () => end("cancelled");
    const timer = setTimeout(() => end("timeout"), command.timeoutMs);
    command.signal?.addEventListener("abort", abort, { once: true });
    try {
      return await new Promise<Outcome>((resolve) => {
        child.once("error", (error) => resolve({ kind: "refused", reason: error.message }));
        // What it left running would hold its pipes open.
        child.once("exit", () => void killWithin(root).catch(() => undefined));
        child.once("close", (code, signal) => resolve(outcomeOf(ending, code, signal)));
      });
    } finally {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", abort);
    }
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Ended meanwhile.
  }
}

function outcomeOf(
  ending: "timeout" | "cancelled" | undefined,
  code: number | null,
  signal: NodeJS.Signals | null,
): Outcome {
  if (ending !== undefined) return { kind: ending };
  if (signal !== null) return { kind: "signalled", signal };
  const name = SIGNAL_NAMES.get((code ?? 0) - SIGNAL_BASE);
  return name === undefined ? { kind: "exited", code: code ?? 0 } : { kind: "signalled", signal: name };
}
