/**
 * Owns one runc sandbox on the host: its writable layer, its network namespace with the model listener, and
 * the commands run in it. Every command is a container of its own over the same root and network, so what a
 * command leaves behind are files, never processes.
 * Does not choose trees or limits and does not interpret results.
 *
 * On disk, below the manager's run directory: `<id>/scratch` is a memory file system of `diskBytes` with the
 * overlay's upper and work directories, `<id>/scratch/root` the mounted overlay, `<id>/command-<n>` one
 * command's runc files. Detaching one mount and removing an empty directory is all the cleaning there is.
 */
import { closeSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { Patch } from "../../patch/patch.js";
import * as files from "../files.js";
import { ModelRelay } from "../relay.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  MODEL_PORT,
  SANDBOX_UID,
  type Sandbox,
  type SandboxSpec,
  type Usage,
  WORKSPACE,
} from "../types.js";
import type { CgroupHost } from "./cgroup.js";
import { runtimeConfig } from "./config.js";
import { Container } from "./container.js";
import {
  createNetworkNamespace,
  listenOnLoopback,
  MS_NODEV,
  MS_NOSUID,
  mount,
  unmountInBackground,
} from "./syscalls.js";
import { applyToUpper, diffUpper } from "./upper.js";

const LISTEN_BACKLOG = 128;
/** Metadata of the overlay itself also counts against the file system's size. */
const SCRATCH_RESERVE_BYTES = 1024 * 1024;
const BYTES_PER_INODE = 4096;
const MIN_INODES = 4096;

export interface SandboxHost {
  readonly runc: string;
  readonly runDirectory: string;
  readonly cgroupParent: string;
  readonly cgroups: CgroupHost;
  readonly onDestroyed: (id: string) => void;
}

export class RuncSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #host: SandboxHost;
  readonly #directory: string;
  readonly #running = new Set<Container>();
  #namespaceFd: number | undefined;
  #relay: ModelRelay | undefined;
  #nCommands = 0;
  #usage: Usage = {};
  #state: "open" | "quiesced" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, host: SandboxHost) {
    this.id = spec.id;
    this.#spec = spec;
    this.#host = host;
    this.#directory = path.join(host.runDirectory, spec.id);
  }

  /** Mounts and network of a new sandbox; nothing of it remains if any part fails. */
  static async create(spec: SandboxSpec, host: SandboxHost): Promise<RuncSandbox> {
    const sandbox = new RuncSandbox(spec, host);
    try {
      sandbox.#mountRoot();
      await sandbox.#openNetwork();
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      if (cause instanceof MortiseError) throw cause;
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `sandbox ${spec.id}: ${cause}`,
        cause,
      });
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    this.#assertOpen();
    const n = ++this.#nCommands;
    const cgroup = path.join(this.#host.cgroupParent, `${this.id}-${n}`);
    const container = new Container(
      {
        runc: this.#host.runc,
        id: `${this.id}-${n}`,
        directory: path.join(this.#directory, `command-${n}`),
        config: runtimeConfig({
          spec: this.#spec,
          command,
          root: this.#root,
          cgroup,
          canLimitSwap: this.#host.cgroups.canLimitSwap,
          // A descriptor of ours names the namespace: it needs no mount and dies with this process.
          ...(this.#namespaceFd === undefined
            ? {}
            : { networkNamespace: `/proc/${process.pid}/fd/${this.#namespaceFd}` }),
        }),
        cgroup,
        cgroups: this.#host.cgroups,
        outputBytes: this.#spec.limits.outputBytes,
      },
      command,
    );
    this.#running.add(container);
    try {
      const result = await container.result;
      this.#usage = added(this.#usage, result.usage);
      return result;
    } finally {
      this.#running.delete(container);
    }
  }

  async putTar(directory: string, tar: Uint8Array): Promise<void> {
    this.#assertIdle();
    await files.unpackBelow(this.#root, directory, tar, SANDBOX_UID);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    this.#assertIdle();
    return files.packBelow(this.#root, directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    for (const container of this.#running) container.kill("cancelled");
    await this.#closeNetwork();
    await Promise.allSettled([...this.#running].map((container) => container.result));
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    return diffUpper(this.#spec.workspace, path.join(this.#upper, WORKSPACE), limits);
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
    for (const container of this.#running) container.kill("destroyed");
    await this.#closeNetwork();
    await Promise.allSettled([...this.#running].map((container) => container.result));
    await unmountInBackground(this.#scratch);
    rmSync(this.#directory, { recursive: true, force: true });
    this.#host.onDestroyed(this.id);
  }

  get #scratch(): string {
    return path.join(this.#directory, "scratch");
  }
  get #upper(): string {
    return path.join(this.#scratch, "upper");
  }
  get #root(): string {
    return path.join(this.#scratch, "root");
  }

  #mountRoot(): void {
    const { limits, image, workspace, patch } = this.#spec;
    mkdirSync(this.#scratch, { recursive: true, mode: 0o700 });
    const inodes = Math.max(MIN_INODES, Math.floor(limits.diskBytes / BYTES_PER_INODE));
    const size = limits.diskBytes + SCRATCH_RESERVE_BYTES;
    mount(
      "mortise",
      this.#scratch,
      "tmpfs",
      MS_NODEV | MS_NOSUID,
      `size=${size},nr_inodes=${inodes},mode=700`,
    );
    for (const name of ["upper", "work", "root"]) mkdirSync(path.join(this.#scratch, name), { mode: 0o755 });
    if (patch !== undefined) applyToUpper(patch, files.workspaceOfUpper(this.#upper));
    // Without redirects, metacopy and index every change is a plain file, directory or whiteout in upper.
    const options = [
      `lowerdir=${path.dirname(workspace.directory)}:${image.location}`,
      `upperdir=${this.#upper}`,
      `workdir=${path.join(this.#scratch, "work")}`,
      "redirect_dir=off,metacopy=off,index=off,xino=off",
    ];
    mount("overlay", this.#root, "overlay", MS_NODEV | MS_NOSUID, options.join(","));
  }

  async #openNetwork(): Promise<void> {
    const { network } = this.#spec;
    if (network.kind === "none") return;
    const made = createNetworkNamespace(() => listenOnLoopback(MODEL_PORT, LISTEN_BACKLOG));
    this.#namespaceFd = made.namespaceFd;
    this.#relay = await ModelRelay.adopt(made.value, network);
  }

  async #closeNetwork(): Promise<void> {
    const fd = this.#namespaceFd;
    this.#namespaceFd = undefined;
    await this.#relay?.close();
    if (fd !== undefined) closeSync(fd);
  }

  #assertOpen(): void {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
  }

  #assertIdle(): void {
    if (this.#state === "destroyed") throw new Error(`sandbox ${this.id} is destroyed`);
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}

/** Sums over commands; a peak is the highest. A number missing once is missing in the sum (C10). */
function added(a: Usage, b: Usage): Usage {
  const isFirst = Object.keys(a).length === 0;
  const sum = (key: "cpuMs" | "oomKills" | "pidsRefusals") =>
    b[key] === undefined || (a[key] === undefined && !isFirst) ? {} : { [key]: (a[key] ?? 0) + b[key] };
  const peak =
    b.memoryPeakBytes === undefined
      ? {}
      : { memoryPeakBytes: Math.max(a.memoryPeakBytes ?? 0, b.memoryPeakBytes) };
  return { ...sum("cpuMs"), ...sum("oomKills"), ...sum("pidsRefusals"), ...peak };
}
