/**
 * Owns one container of the docker backend: an idle first process, commands as `exec`, files reached below the
 * container's root as this host sees it, and its network namespace, entered from outside.
 * Does not choose images and does not start daemons.
 */
import { existsSync, lstatSync, mkdirSync, openSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import { applyToDirectory } from "../../patch/apply.js";
import { type Patch, sha256 } from "../../patch/patch.js";
import * as files from "../files.js";
import { type AllowedHostRules, SandboxNetwork } from "../network/index.js";
import type { CgroupHost } from "../runc/cgroup.js";
import { EtcFiles } from "../runc/etc-files.js";
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
  type Tree,
  USER_IDS,
  type Usage,
  WORKSPACE,
} from "../types.js";
import { addAgentAccount } from "./agent-account.js";
import { diffContainer, packContainer } from "./archive-tree.js";
import { ContainerCommand } from "./command.js";
import { containerOptions } from "./container-options.js";
import { ContainerProcesses } from "./container-processes.js";
import { ignoreMissing } from "./engine.js";
import type { DockerImages, EngineImage } from "./images.js";
import { SnapshotImage } from "./snapshot-image.js";
import { differenceOf } from "./usage-difference.js";
import { workspaceTar } from "./workspace-tar.js";

const SNAPSHOT_REPOSITORY = "mortise-snapshot";

export interface DockerHost {
  readonly docker: Docker;
  readonly owner: string;
  readonly images: DockerImages;
  readonly cgroups: CgroupHost;
  /** For the few files of each sandbox that lie outside its container. */
  readonly runDirectory: string;
  readonly allowedHosts: AllowedHostRules;
  readonly onDestroyed: (sandbox: DockerSandbox) => void;
}

interface Started {
  readonly container: Docker.Container;
  readonly processes: ContainerProcesses;
  readonly network: SandboxNetwork;
  /** The container's root as long as it runs, with everything mounted in it. */
  readonly liveRoot: string;
  /** Its own file system alone. */
  readonly hostRoot: string | undefined;
}

export class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #host: DockerHost;
  readonly #image: EngineImage;
  readonly #directory: string;
  readonly #running = new Map<ContainerCommand, Promise<unknown>>();
  #container: Docker.Container | undefined;
  #etc: EtcFiles | undefined;
  #network: SandboxNetwork | undefined;
  #started: Started | undefined;
  /** What the image has where the workspace was laid over it. */
  #below: Tree | undefined;
  #usage: Usage = {};
  #state: "open" | "quiesced" | "snapshot" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, host: DockerHost) {
    this.id = spec.id;
    this.#spec = spec;
    this.#host = host;
    this.#image = host.images.engineImageOf(spec.image);
    this.#directory = path.join(host.runDirectory, spec.id);
  }

  /** A running container; nothing of it remains if any part fails. */
  static async create(spec: SandboxSpec, host: DockerHost): Promise<DockerSandbox> {
    const sandbox = new DockerSandbox(spec, host);
    sandbox.#image.snapshot?.use();
    try {
      await sandbox.#start();
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      if (cause instanceof MortiseError) throw cause;
      throw new MortiseError({
        code: "MORTISE_SANDBOX_SETUP",
        message: `sandbox ${spec.id}: ${(cause as Error).message}`,
        cause,
      });
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    const { container, processes } = this.#parts;
    const startedAt = performance.now();
    const before = processes.usage();
    const { outputBytes } = this.#spec.limits;
    const running = new ContainerCommand({
      container,
      processes,
      command,
      workdir: this.#workdir,
      outputBytes: Math.min(outputBytes, command.outputBytes ?? outputBytes),
      isAlone: () => this.#running.size <= 1,
    });
    const ended = running.run();
    this.#running.set(running, ended);
    const outcome = await ended.finally(() => this.#running.delete(running));
    const usage = differenceOf(before, processes.usage());
    const isKilled = outcome.kind === "signalled" || (outcome.kind === "exited" && outcome.code !== 0);
    return {
      outcome:
        isKilled && (usage.oomKills ?? 0) > 0 ? { kind: "out-of-memory", kills: usage.oomKills! } : outcome,
      stdout: running.stdout.end(),
      stderr: running.stderr.end(),
      usage,
      wallMs: performance.now() - startedAt,
      isInsecure: false,
    };
  }

  /** The engine's own way in would write below scratch volumes, where nobody sees it. */
  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser = "agent"): Promise<void> {
    this.#assertIdle();
    await files.unpackBelow(this.#parts.liveRoot, directory, tar, USER_IDS[owner]);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    if (this.#state === "quiesced") return packContainer(this.#parts.container, directory);
    this.#assertIdle();
    return files.packBelow(this.#parts.liveRoot, directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state !== "open") return;
    this.#usage = this.#measure();
    this.#state = "quiesced";
    for (const command of this.#running.keys()) command.mark("cancelled");
    // With the first process the kernel ends the whole PID namespace: whoever might have meddled with it inside.
    await this.#container?.kill().catch(ignoreMissing);
    await this.#network?.close();
    await Promise.allSettled(this.#running.values());
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    const { workspace: tree } = this.#spec;
    return diffContainer(
      this.#parts.container,
      { directory: this.#workdir, tree, below: this.#below },
      limits,
    );
  }

  get isModelUnreachable(): boolean {
    return this.#network?.isModelUnreachable ?? false;
  }

  get modelTimeMs(): number {
    return this.#network?.modelTimeMs ?? 0;
  }

  get hostRoot(): string | undefined {
    return this.#state === "open" ? this.#started?.hostRoot : undefined;
  }

  async stats(): Promise<Usage> {
    return { ...this.#measure(), ...(this.#network === undefined ? {} : { nDenied: this.#network.nDenied }) };
  }

  async setNetwork(network: Network): Promise<void> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    try {
      await this.#parts.network.set(network);
    } finally {
      this.#etc!.setHosts(this.#parts.network.knownHosts);
    }
  }

  async proveNetwork(): Promise<NetworkProof> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    return this.#parts.network.prove();
  }

  /** Of a quiesced one too: then it is what a trial left. */
  async snapshot(): Promise<Snapshot> {
    if (this.#state !== "quiesced") this.#assertIdle();
    const { docker, images, owner } = this.#host;
    const name = `${SNAPSHOT_REPOSITORY}:${owner}-${sha256(this.#parts.container.id).slice(0, 16)}`;
    const [repo, tag] = name.split(":");
    await this.#parts.container.commit({ repo, tag });
    await this.quiesce();
    this.#state = "snapshot";
    const [made, base] = await Promise.all(
      [name, this.#image.name].map((one) => docker.getImage(one).inspect()),
    );
    const digest = made!.Id.replace("sha256:", "");
    const snapshot = new SnapshotImage(docker, name);
    images.add(digest, {
      name,
      workspace: this.#spec.workspace.digest,
      snapshot,
      ...(this.#below === undefined ? {} : { below: this.#below }),
    });
    return {
      digest,
      kind: "snapshot",
      defaults: this.#spec.image.defaults,
      bytes: made!.Size - base!.Size,
      release: () => {
        images.forget(digest);
        return snapshot.release();
      },
    };
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#usage = this.#measure();
    this.#state = "destroyed";
    for (const command of this.#running.keys()) command.mark("destroyed");
    await this.#container?.remove({ force: true, v: true }).catch(ignoreMissing);
    await this.#network?.close();
    await Promise.allSettled(this.#running.values());
    rmSync(this.#directory, { recursive: true, force: true });
    await this.#image.snapshot?.leave();
    this.#host.onDestroyed(this);
  }

  get #workdir(): string {
    return this.#spec.workdir ?? WORKSPACE;
  }

  get #parts(): Started {
    if (this.#started === undefined) throw new Error(`sandbox ${this.id} was not started`);
    return this.#started;
  }

  async #start(): Promise<void> {
    const { docker, owner, cgroups, allowedHosts } = this.#host;
    mkdirSync(this.#directory, { recursive: true, mode: 0o755 });
    this.#etc = new EtcFiles(path.join(this.#directory, "etc"));
    const spec = this.#spec;
    const options = containerOptions({ spec, image: this.#image.name, owner, etc: this.#etc.mounts });
    const container = await docker.createContainer(options);
    this.#container = container;
    await this.#layWorkspace(container);
    await container.start();
    const { State, GraphDriver } = await container.inspect();
    const processes = await ContainerProcesses.of(container, cgroups, State.Pid);
    const liveRoot = `/proc/${State.Pid}/root`;
    this.#network = await SandboxNetwork.adopt(
      openSync(`/proc/${State.Pid}/ns/net`, "r"),
      spec.network,
      allowedHosts,
    );
    this.#etc.setHosts(this.#network.knownHosts);
    addAgentAccount(liveRoot);
    if (spec.patch !== undefined) applyBelow(liveRoot, this.#workdir, spec.patch);
    this.#started = {
      container,
      processes,
      network: this.#network,
      liveRoot,
      hostRoot: mergedDirectory(GraphDriver),
    };
  }

  async #layWorkspace(container: Docker.Container): Promise<void> {
    const { workspace, image } = this.#spec;
    this.#below = this.#image.below;
    if (workspace.directory === undefined || this.#image.workspace === workspace.digest) return;
    this.#below = await this.#host.images.readTreeIfThere(image, this.#workdir);
    const tar = await workspaceTar({ ...workspace, directory: workspace.directory }, this.#workdir);
    await container.putArchive(Buffer.from(tar), { path: "/" });
  }

  #measure(): Usage {
    return this.#state === "open" ? (this.#started?.processes.usage() ?? {}) : this.#usage;
  }

  #assertIdle(): void {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}

/** What is written belongs to whom the workspace belongs. */
function applyBelow(root: string, workdir: string, patch: Patch): void {
  const workspace = files.resolveDirectory(root, workdir.slice(1));
  const { uid, gid } = lstatSync(workspace);
  applyToDirectory(patch, workspace, { uid, gid });
}

/** Where the engine's overlay driver shows a running container's files; other drivers have no such place. */
function mergedDirectory(driver: { readonly Name: string; readonly Data: unknown }): string | undefined {
  if (driver?.Name !== "overlay2") return undefined;
  const merged = (driver.Data as { readonly MergedDir?: string } | null)?.MergedDir;
  return merged !== undefined && existsSync(merged) ? merged : undefined;
}
