/**
 * Owns one runc sandbox on the host: its root file system, its network namespace and the commands run in it. Every
 * command is a container of its own over the same root and network, so what a command leaves behind are files,
 * never processes.
 * Does not choose trees or limits and does not interpret results.
 *
 * Everything lies in one directory below the manager's run directory: what root.ts says, `etc` with the files
 * mounted below /etc, `command-<n>` with one command's runc files.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { type Patch, sha256 } from "../../patch/patch.js";
import * as files from "../files.js";
import { sourceDirectory } from "../mount-source.js";
import { type AllowedHostRules, SandboxNetwork } from "../network/index.js";
import { setupFailure } from "../setup-error.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  type Network,
  type NetworkProof,
  type Sandbox,
  type SandboxSpec,
  type SandboxUser,
  type Snapshot,
  USER_IDS,
  type Usage,
} from "../types.js";
import type { CgroupHost } from "./cgroup.js";
import { type BindMount, runtimeConfig } from "./config.js";
import { Container } from "./container.js";
import { EtcFiles } from "./etc-files.js";
import type { RootStack, RuncImages } from "./images.js";
import { type RootParts, SandboxRoot } from "./root.js";
import { HeldLayer } from "./snapshots.js";
import type { Starts } from "./starts.js";
import { diffUppers } from "./upper.js";
import { addedUsage } from "./usage.js";

/** A command of ours, and what starts it, beside one that has used its pids up. */
const RESERVED_PIDS = 24;

export interface SandboxHost {
  readonly runc: string;
  readonly runDirectory: string;
  readonly cgroupParent: string;
  readonly cgroups: CgroupHost;
  readonly images: RuncImages;
  readonly allowedHosts: AllowedHostRules;
  readonly starts: Starts;
  readonly onDestroyed: (id: string) => void;
}

/** Where the root file system of a sandbox comes from. */
export interface RootSource {
  readonly stack: RootStack;
  readonly parts: RootParts;
  /** Layers of the stack above the tree that `diff` is taken against, topmost first. */
  readonly changed: readonly string[];
}

export class RuncSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #host: SandboxHost;
  readonly #source: RootSource;
  readonly #directory: string;
  readonly #root: SandboxRoot;
  readonly #mounts: BindMount[];
  readonly #running = new Set<Container>();
  readonly #ended: Usage[] = [];
  #etc: EtcFiles | undefined;
  #network: SandboxNetwork | undefined;
  #nCommands = 0;
  #state: "open" | "quiesced" | "snapshot" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, host: SandboxHost, source: RootSource) {
    this.id = spec.id;
    this.#spec = spec;
    this.#host = host;
    this.#source = source;
    this.#directory = path.join(host.runDirectory, spec.id);
    this.#root = new SandboxRoot(this.#directory, source.parts);
    this.#mounts = spec.mounts.map((one) => ({
      source: sourceDirectory(one),
      target: one.target,
      isWritable: false,
    }));
  }

  /** Mounts and network of a new sandbox; nothing of it remains if any part fails. */
  static async create(spec: SandboxSpec, host: SandboxHost, source: RootSource): Promise<RuncSandbox> {
    const sandbox = new RuncSandbox(spec, host, source);
    for (const held of source.stack.held) held.use();
    try {
      mkdirSync(sandbox.#directory, { recursive: true, mode: 0o700 });
      sandbox.#root.mount();
      sandbox.#limit();
      if (spec.patch !== undefined) sandbox.#root.apply(spec.patch);
      sandbox.#etc = new EtcFiles(path.join(sandbox.#directory, "etc"));
      sandbox.#network = await SandboxNetwork.create(spec.network, host.allowedHosts);
      sandbox.#etc.setHosts(sandbox.#network.knownHosts);
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      throw setupFailure(spec.id, cause);
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    const n = ++this.#nCommands;
    const cgroup = path.join(this.#cgroup, String(n));
    const { outputBytes } = this.#spec.limits;
    const container = new Container(
      {
        runc: this.#host.runc,
        id: `${this.id}-${n}`,
        directory: path.join(this.#directory, `command-${n}`),
        config: runtimeConfig({
          spec: this.#spec,
          command,
          root: this.#root.path,
          cgroup,
          canLimitSwap: this.#host.cgroups.canLimitSwap,
          // A descriptor of ours names the namespace: it needs no mount and dies with this process.
          networkNamespace: this.#network!.namespacePath,
          mounts: this.#bindMounts(),
        }),
        cgroup,
        sandboxCgroup: this.#cgroup,
        cgroups: this.#host.cgroups,
        starts: this.#host.starts,
        outputBytes: Math.min(outputBytes, command.outputBytes ?? outputBytes),
      },
      command,
    );
    this.#running.add(container);
    try {
      const result = await container.result;
      this.#ended.push(result.usage);
      return result;
    } finally {
      this.#running.delete(container);
    }
  }

  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser = "agent"): Promise<void> {
    this.#assertIdle();
    await files.unpackBelow(this.#root.path, directory, tar, USER_IDS[owner]);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    this.#assertIdle();
    return files.packBelow(this.#root.path, directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state === "open") this.#state = "quiesced";
    for (const container of this.#running) container.kill("cancelled");
    await this.#network?.close();
    await Promise.allSettled([...this.#running].map((container) => container.result));
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    const { changed, parts } = this.#source;
    return diffUppers(this.#spec.workspace, [this.#root.upper, ...changed], parts.workdir, limits);
  }

  get isModelUnreachable(): boolean {
    return this.#network?.isModelUnreachable ?? false;
  }

  get modelTimeMs(): number {
    return this.#network?.modelTimeMs ?? 0;
  }

  get hostRoot(): string {
    return this.#root.path;
  }

  async stats(): Promise<Usage> {
    const { throttledMs } = this.#host.cgroups.usage(this.#cgroup);
    const added = addedUsage([...this.#ended, ...[...this.#running].map(({ usage }) => usage)]);
    return {
      ...added,
      ...(throttledMs === undefined ? {} : { throttledMs }),
      ...(this.#network === undefined ? {} : { nDenied: this.#network.nDenied }),
    };
  }

  async setNetwork(network: Network): Promise<void> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    try {
      await this.#network!.set(network);
    } finally {
      this.#etc!.setHosts(this.#network!.knownHosts);
    }
  }

  async proveNetwork(): Promise<NetworkProof> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    return this.#network!.prove();
  }

  async snapshot(): Promise<Snapshot> {
    this.#assertIdle();
    await this.quiesce();
    this.#state = "snapshot";
    const { images, runDirectory } = this.#host;
    const { stack, parts } = this.#source;
    const name = randomUUID();
    // A dot keeps it apart from every sandbox's directory.
    const place = path.join(runDirectory, `snapshot.${name}`);
    const held = await this.#root.release((memory, upper) =>
      HeldLayer.take(memory, place, upper, stack.held),
    );
    const digest = sha256(`${this.#spec.image.digest}\n${name}\n`);
    const layers = [held.layer, ...this.#root.lower];
    images.add(digest, { layers, root: parts.root, held: [held] });
    let released: Promise<void> | undefined;
    return {
      digest,
      kind: "snapshot",
      defaults: this.#spec.image.defaults,
      bytes: held.bytes,
      release: () => {
        images.forget(digest);
        released ??= held.leave();
        return released;
      },
    };
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    for (const container of this.#running) container.kill("destroyed");
    await this.#network?.close();
    await Promise.allSettled([...this.#running].map((container) => container.result));
    await this.#root.unmount();
    await this.#host.cgroups.remove(this.#cgroup);
    rmSync(this.#directory, { recursive: true, force: true });
    for (const held of this.#source.stack.held) await held.leave();
    this.#host.onDestroyed(this.id);
  }

  get #cgroup(): string {
    return path.join(this.#host.cgroupParent, this.id);
  }

  /** Of all commands together. What they write is memory too, and stays when they have ended. */
  #limit(): void {
    const { limits, scratch = [] } = this.#spec;
    const written = scratch.reduce((sum, { bytes }) => sum + bytes, limits.diskBytes);
    this.#host.cgroups.make(this.#cgroup, {
      cpus: limits.cpus,
      memoryBytes: limits.memoryBytes + written,
      pids: limits.pids + RESERVED_PIDS,
    });
  }

  /** Ours last: nothing a task mounts can take the place of /etc/hosts. */
  #bindMounts(): BindMount[] {
    const volumes = this.#root.volumes.map((one) => ({ ...one, isWritable: true }));
    const etc = this.#etc!.mounts.map((one) => ({ ...one, isWritable: false }));
    return [...this.#mounts, ...volumes, ...etc];
  }

  #assertIdle(): void {
    if (this.#state === "destroyed" || this.#state === "snapshot")
      throw new Error(`sandbox ${this.id} is ${this.#state === "snapshot" ? "a snapshot" : "destroyed"}`);
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}
