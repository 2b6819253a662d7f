/**
 * Owns one sandbox of the process backend: a directory, and process groups that are killed as a whole.
 * Isolates nothing (see backend.ts). Paths that exist only inside a real sandbox are rewritten in arguments
 * and environment; a program that spells them itself will not find them. Every command runs as this process's own
 * user, whatever user is asked for.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { constants as osConstants } from "node:os";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { Patch } from "../../patch/patch.js";
import { diffDirectory } from "../../patch/snapshot.js";
import { packBelow, unpackBelow } from "../files.js";
import { NO_OUTPUT, OutputCollector } from "../output.js";
import { processIdentity } from "../owner.js";
import { ModelRelay } from "../relay.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  MODEL_PORT,
  type Network,
  type NetworkProof,
  type Outcome,
  type Sandbox,
  type SandboxSpec,
  type Snapshot,
  type Usage,
  WORKSPACE,
} from "../types.js";

type Ending = "timeout" | "cancelled" | "destroyed";
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));
const SIGNAL_BASE = 128;

/** A path as commands spell it and where it is on this host. */
export interface Place {
  readonly inside: string;
  readonly outside: string;
}

export interface ProcessFacts {
  readonly spec: SandboxSpec;
  /** With `workspace` and `tmp` in it. */
  readonly directory: string;
  readonly mounts: readonly Place[];
  /** Takes the files of a sandbox that ended over. */
  readonly keep: (directory: string) => Snapshot;
  readonly onDestroyed: () => void;
}

export class ProcessSandbox implements Sandbox {
  readonly id: string;
  /** There is no root file system. */
  readonly hostRoot = undefined;
  readonly #facts: ProcessFacts;
  readonly #places: readonly Place[];
  readonly #running = new Map<ChildProcess, { ending?: Ending; readonly ended: Promise<void> }>();
  #endpoint: { relay: ModelRelay; port: number } | undefined;
  #state: "open" | "quiesced" | "snapshot" | "destroyed" = "open";

  private constructor(facts: ProcessFacts) {
    const { spec, directory } = facts;
    this.id = spec.id;
    this.#facts = facts;
    const volumes = (spec.scratch ?? []).map(({ target }, at) => ({
      inside: target,
      outside: path.join(directory, `volume-${at}`),
    }));
    this.#places = [
      ...facts.mounts,
      ...volumes,
      { inside: spec.workdir ?? WORKSPACE, outside: path.join(directory, "workspace") },
    ];
    for (const { outside } of volumes) mkdirSync(outside);
    mkdirSync(path.join(directory, "groups"), { recursive: true });
  }

  static async create(facts: ProcessFacts): Promise<ProcessSandbox> {
    const sandbox = new ProcessSandbox(facts);
    await sandbox.setNetwork(facts.spec.network);
    return sandbox;
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
    const { outputBytes } = this.#facts.spec.limits;
    const kept = Math.min(outputBytes, command.outputBytes ?? outputBytes);
    const stdout = new OutputCollector(kept);
    const stderr = new OutputCollector(kept);
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

  async putTar(directory: string, tar: Uint8Array): Promise<void> {
    this.#assertIdle();
    const { root, below } = this.#placeOf(directory);
    await unpackBelow(root, below, tar, process.getuid!());
  }

  async getTar(directory: string): Promise<Uint8Array> {
    this.#assertIdle();
    const { root, below } = this.#placeOf(directory);
    return packBelow(root, below);
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    await this.#killAll("cancelled");
    await this.#endpoint?.relay.close();
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    const { spec, directory } = this.#facts;
    return diffDirectory(spec.workspace, path.join(directory, "workspace"), limits);
  }

  get isModelUnreachable(): boolean {
    return this.#endpoint?.relay.isUnreachable ?? false;
  }

  get modelTimeMs(): number {
    return this.#endpoint?.relay.modelTimeMs ?? 0;
  }

  /** Nothing is measured: there is no boundary to measure at. */
  async stats(): Promise<Usage> {
    return {};
  }

  /** Opens and closes the model endpoint; the rest of the network is the host's and stays open. */
  async setNetwork(network: Network): Promise<void> {
    if (network.kind === "allow-list")
      throw new MortiseError({
        code: "MORTISE_SANDBOX_BACKEND",
        message: "the process backend cannot confine a network to allowed_hosts.",
        fix: "Set sandbox.backend to runc or docker.",
      });
    await this.#endpoint?.relay.close();
    this.#endpoint = network.kind === "none" ? undefined : await ModelRelay.open(network);
  }

  /** Tries whether a port of this host can be reached, which from a closed network it could not. */
  async proveNetwork(): Promise<NetworkProof> {
    const isReachable = await reachesHost();
    return {
      isClosed: false,
      probes: [
        {
          name: "tcp port of the host",
          expected: "unreachable",
          observed: isReachable ? "reachable" : "unreachable",
        },
      ],
    };
  }

  /** Workspace and /tmp, moved away: there is nothing else of its own. */
  async snapshot(): Promise<Snapshot> {
    this.#assertIdle();
    await this.quiesce();
    this.#state = "snapshot";
    return this.#facts.keep(this.#facts.directory);
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    await this.#killAll("destroyed");
    await this.#endpoint?.relay.close();
    rmSync(this.#facts.directory, { recursive: true, force: true });
    this.#facts.onDestroyed();
  }

  #spawn(command: Command, stdout: OutputCollector, stderr: OutputCollector): Promise<Outcome> {
    const [program, ...parameters] = command.argv.map((argument) => this.#rewrite(argument));
    const child = spawn(program === "node" ? process.execPath : program!, parameters, {
      cwd: this.#rewrite(command.cwd ?? this.#facts.spec.workdir ?? WORKSPACE),
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
    child.stderr.on("data", (chunk: Uint8Array) => {
      stderr.add(chunk);
      command.onStderr?.(chunk);
    });
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
    writeFileSync(path.join(this.#facts.directory, "groups", String(group)), processIdentity(group) ?? "");
  }

  /** Paths and the model port as this host has them. */
  #rewrite(text: string): string {
    let rewritten = text;
    for (const { inside, outside } of this.#places)
      rewritten = rewritten.replace(new RegExp(`(^|[=:\\s"'])${inside}(?=$|[/:\\s"'])`, "g"), `$1${outside}`);
    return this.#endpoint === undefined
      ? rewritten
      : rewritten.replaceAll(`127.0.0.1:${MODEL_PORT}`, `127.0.0.1:${this.#endpoint.port}`);
  }

  /** A root on this host and an absolute path below it. Paths that only a real sandbox has are refused. */
  #placeOf(directory: string): { root: string; below: string } {
    const tmp = { inside: "/tmp", outside: path.join(this.#facts.directory, "tmp") };
    const place = [...this.#places, tmp].find(
      ({ inside }) => directory === inside || directory.startsWith(`${inside}/`),
    );
    if (place === undefined)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_BACKEND",
        message: `the process backend has no ${JSON.stringify(directory)} of its own, only its workspace, /tmp and volumes.`,
        fix: "Set sandbox.backend to runc or docker.",
      });
    return { root: place.outside, below: directory.slice(place.inside.length) };
  }

  #assertIdle(): void {
    if (this.#state === "destroyed" || this.#state === "snapshot")
      throw new Error(`sandbox ${this.id} is ${this.#state === "snapshot" ? "a snapshot" : "destroyed"}`);
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}

async function reachesHost(): Promise<boolean> {
  const server = net.createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const socket = net.connect(port, "127.0.0.1");
  const isReachable = await new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  });
  socket.destroy();
  server.close();
  return isReachable;
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
