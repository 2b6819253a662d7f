/**
 * Owns one container of the docker backend: an idle first process, commands as `exec`, the model listener
 * handed in from outside. Stopping a command that will not end means stopping the container: Docker offers no
 * way to kill one exec with its children. Files can still be read afterwards.
 * Does not choose images and does not start daemons.
 */
import { closeSync, openSync, readFileSync, readlinkSync } from "node:fs";
import { constants as osConstants } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import type { Patch } from "../../patch/patch.js";
import { diffTar } from "../../patch/snapshot.js";
import { packTar, type TarMember, unpackTar } from "../../patch/tar.js";
import { OutputCollector } from "../output.js";
import { ModelRelay } from "../relay.js";
import { CgroupHost } from "../runc/cgroup.js";
import { listenOnLoopback, withinNetworkNamespace } from "../runc/syscalls.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  MODEL_PORT,
  type Outcome,
  SANDBOX_UID,
  type Sandbox,
  type SandboxSpec,
  type Usage,
  WORKSPACE,
} from "../types.js";

export const OWNER_LABEL = "io.mortise.owner";
const LISTEN_BACKLOG = 128;
const MAX_ARCHIVE_BYTES = 1024 * 1024 * 1024;
/** The container's own first process and the runtime's helper inside its pids limit. */
const RESERVED_PIDS = 4;
const SIGNAL_BASE = 128;
const SIGNAL_NAMES = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));

export interface DockerHost {
  readonly docker: Docker;
  readonly owner: string;
  readonly onDestroyed: (sandbox: DockerSandbox) => void;
}

type Ending = "timeout" | "cancelled" | "destroyed";

export class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #host: DockerHost;
  #container: Docker.Container;
  #cgroup: string | undefined;
  #relay: ModelRelay | undefined;
  #ending: Ending | undefined;
  #usage: Usage = {};
  #state: "open" | "quiesced" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, host: DockerHost, container: Docker.Container) {
    this.id = spec.id;
    this.#spec = spec;
    this.#host = host;
    this.#container = container;
  }

  static async create(spec: SandboxSpec, host: DockerHost): Promise<DockerSandbox> {
    const container = await host.docker
      .createContainer(containerOptions(spec, host.owner))
      .catch((cause: unknown) => {
        throw new MortiseError({
          code: "MORTISE_SANDBOX_SETUP",
          message: `sandbox ${spec.id}: ${cause}`,
          cause,
        });
      });
    const sandbox = new DockerSandbox(spec, host, container);
    try {
      await container.putArchive(Buffer.from(await workspaceTar(spec)), { path: "/" });
      await container.start();
      const { State } = await container.inspect();
      sandbox.#cgroup = memoryGroupOf(State.Pid);
      await sandbox.#openNetwork(State.Pid);
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `sandbox ${spec.id}: ${cause}`,
        cause,
      });
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    const startedAt = performance.now();
    const before = this.#measure();
    const stdout = new OutputCollector(this.#spec.limits.outputBytes);
    const stderr = new OutputCollector(this.#spec.limits.outputBytes);
    const abort = () => void this.#kill("cancelled");
    const timer = setTimeout(() => void this.#kill("timeout"), command.timeoutMs);
    command.signal?.addEventListener("abort", abort, { once: true });
    if (command.signal?.aborted) abort();
    let outcome: Outcome;
    try {
      outcome = await this.#run(command, stdout, stderr);
    } catch (error) {
      outcome = this.#ended() ?? { kind: "refused", reason: (error as Error).message };
    } finally {
      clearTimeout(timer);
      command.signal?.removeEventListener("abort", abort);
    }
    this.#usage = this.#measure();
    const usage = difference(before, this.#usage);
    if ((usage.oomKills ?? 0) > 0 && !(outcome.kind === "exited" && outcome.code === 0))
      outcome = { kind: "out-of-memory", kills: usage.oomKills! };
    const wallMs = performance.now() - startedAt;
    return { outcome, stdout: stdout.end(), stderr: stderr.end(), usage, wallMs, isInsecure: false };
  }

  async putTar(directory: string, tar: Uint8Array): Promise<void> {
    await this.#container.putArchive(Buffer.from(tar), { path: directory });
  }

  async getTar(directory: string): Promise<Uint8Array> {
    const prefix = `${path.basename(directory)}/`;
    const members = (await this.#archive(directory)).flatMap((member): TarMember[] => {
      const name = member.name.startsWith(prefix) ? member.name.slice(prefix.length).replace(/\/$/, "") : "";
      if (name === "" || !["file", "directory", "symlink"].includes(member.type)) return [];
      return [{ ...member, name, kind: member.type as TarMember["kind"], mode: member.mode & 0o777 }];
    });
    return packTar(members);
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    await this.#kill("cancelled");
    await this.#relay?.close();
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    const members = await this.#archive(WORKSPACE);
    return diffTar(this.#spec.workspace, members, `${path.basename(WORKSPACE)}/`, limits);
  }

  get isModelUnreachable(): boolean {
    return this.#relay?.isUnreachable ?? false;
  }

  async stats(): Promise<Usage> {
    return this.#usage;
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    this.#ending ??= "destroyed";
    await this.#relay?.close();
    await this.#container.remove({ force: true, v: true }).catch(ignoreMissing);
    this.#host.onDestroyed(this);
  }

  async #run(command: Command, stdout: OutputCollector, stderr: OutputCollector): Promise<Outcome> {
    const exec = await this.#container.exec({
      Cmd: [...command.argv],
      Env: Object.entries(command.environment).map(([name, value]) => `${name}=${value}`),
      WorkingDir: command.cwd ?? WORKSPACE,
      User: `${SANDBOX_UID}:${SANDBOX_UID}`,
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = await exec.start({ hijack: true, stdin: true });
    const [out, err] = [new PassThrough(), new PassThrough()];
    out.on("data", (chunk: Uint8Array) => {
      stdout.add(chunk);
      command.onStdout?.(chunk);
    });
    err.on("data", (chunk: Uint8Array) => stderr.add(chunk));
    this.#container.modem.demuxStream(stream, out, err);
    stream.end(command.stdin);
    await new Promise<void>((resolve) => stream.once("close", resolve).once("end", resolve));
    const ended = this.#ended();
    if (ended !== undefined) return ended;
    const { ExitCode: code, Running: isRunning } = await exec.inspect();
    if (isRunning || code === null) return { kind: "lost", reason: "the container ended under the command" };
    const text = Buffer.concat([stdout.end().bytes, stderr.end().bytes]).toString("utf8", 0, 4096);
    if ((code === 126 || code === 127) && text.includes("OCI runtime exec failed"))
      return { kind: "refused", reason: text.trim() };
    const signal = SIGNAL_NAMES.get(code - SIGNAL_BASE);
    return signal === undefined ? { kind: "exited", code } : { kind: "signalled", signal };
  }

  #ended(): Outcome | undefined {
    if (this.#ending === undefined) return undefined;
    return this.#ending === "destroyed"
      ? { kind: "lost", reason: "the sandbox was destroyed" }
      : { kind: this.#ending };
  }

  async #kill(ending: Ending): Promise<void> {
    this.#ending ??= ending;
    await this.#container.kill().catch(ignoreMissing);
  }

  async #openNetwork(pid: number): Promise<void> {
    const { network } = this.#spec;
    if (network.kind === "none") return;
    const namespaceFd = openSync(`/proc/${pid}/ns/net`, "r");
    try {
      const listener = withinNetworkNamespace(namespaceFd, () =>
        listenOnLoopback(MODEL_PORT, LISTEN_BACKLOG),
      );
      this.#relay = await ModelRelay.adopt(listener, network);
    } finally {
      closeSync(namespaceFd);
    }
  }

  #measure(): Usage {
    return this.#cgroup === undefined ? {} : (CgroupHost.detect()?.usage(this.#cgroup) ?? {});
  }

  async #archive(directory: string) {
    const stream = await this.#container.getArchive({ path: directory });
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    return unpackTar(Buffer.concat(chunks), MAX_ARCHIVE_BYTES);
  }
}

function containerOptions(spec: SandboxSpec, owner: string): Docker.ContainerCreateOptions {
  const { limits } = spec;
  return {
    Image: spec.image.location,
    Cmd: ["sleep", "infinity"],
    User: `${SANDBOX_UID}:${SANDBOX_UID}`,
    WorkingDir: WORKSPACE,
    Env: ["PATH=/usr/bin:/bin"],
    Labels: { [OWNER_LABEL]: owner, "io.mortise.sandbox": spec.id },
    HostConfig: {
      NetworkMode: "none",
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: limits.pids + RESERVED_PIDS,
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      NanoCpus: Math.round(limits.cpus * 1e9),
      OomScoreAdj: 500,
      Binds: spec.mounts.map(({ tree, target }) => `${tree.directory}:${target}:ro`),
    },
  };
}

/** The pristine workspace with the patch applied, as a tar of `workspace/…` owned by the agent. */
async function workspaceTar(spec: SandboxSpec): Promise<Uint8Array> {
  const leaves = new Map<string, TarMember>();
  for (const entry of spec.workspace.entries.values()) {
    const file = path.join(spec.workspace.directory, entry.path);
    const body = entry.kind === "symlink" ? { target: readlinkSync(file) } : { content: readFileSync(file) };
    leaves.set(entry.path, { name: `workspace/${entry.path}`, kind: entry.kind, mode: entry.mode, ...body });
  }
  for (const entry of spec.patch?.entries ?? []) if (entry.kind === "deleted") leaves.delete(entry.path);
  for (const entry of spec.patch?.entries ?? []) {
    if (entry.kind === "deleted") continue;
    const mode = entry.kind === "file" ? entry.mode : 0o777;
    leaves.set(entry.path, { ...entry, name: `workspace/${entry.path}`, mode });
  }
  const directories = new Set<string>(["workspace"]);
  for (const { name } of leaves.values())
    for (let end = name.indexOf("/"); end > 0; end = name.indexOf("/", end + 1))
      directories.add(name.slice(0, end));
  const parents = [...directories].sort().map((name) => ({ name, kind: "directory" as const, mode: 0o755 }));
  return packTar([...parents, ...leaves.values()], SANDBOX_UID);
}

/** Path of the memory control group of a process, in its own hierarchy. */
function memoryGroupOf(pid: number): string | undefined {
  const lines = readFileSync(`/proc/${pid}/cgroup`, "utf8").split("\n");
  const line =
    lines.find((candidate) => candidate.split(":")[1]?.split(",").includes("memory")) ??
    lines.find((candidate) => candidate.startsWith("0::"));
  return line?.split(":").slice(2).join(":");
}

/** What one command added to the container's counters. */
function difference(before: Usage, after: Usage): Usage {
  const delta = (key: "cpuMs" | "oomKills" | "pidsRefusals") =>
    before[key] === undefined || after[key] === undefined ? {} : { [key]: after[key] - before[key] };
  const peak = after.memoryPeakBytes === undefined ? {} : { memoryPeakBytes: after.memoryPeakBytes };
  return { ...delta("cpuMs"), ...delta("oomKills"), ...delta("pidsRefusals"), ...peak };
}

/** A container that is gone or has ended already is what was wanted. */
function ignoreMissing(error: { statusCode?: number }): void {
  if (error.statusCode !== 404 && error.statusCode !== 409) throw error;
}
