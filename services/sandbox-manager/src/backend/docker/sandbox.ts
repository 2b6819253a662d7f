/**
 * Owns one container of the docker backend: an idle first process, commands as `exec`, and what its host does with it
 * from outside (host/types.ts). Does not choose images and does not know where the engine is.
 */
import type Docker from "dockerode";
import { type Patch, sha256 } from "../../patch/patch.js";
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
  type Tree,
  type Usage,
  WORKSPACE,
} from "../types.js";
import { diffContainer, packContainer } from "./archive-tree.js";
import { ContainerCommand } from "./command.js";
import { containerOptions } from "./container-options.js";
import { ContainerProcesses } from "./container-processes.js";
import { ignoreMissing } from "./engine.js";
import type { EngineHost, HostedContainer } from "./host/types.js";
import type { DockerImages, EngineImage } from "./images.js";
import { SnapshotImage } from "./snapshot-image.js";
import { differenceOf } from "./usage-difference.js";
import { workspaceTar } from "./workspace-tar.js";

const SNAPSHOT_REPOSITORY = "mortise-snapshot";

export interface DockerParts {
  readonly docker: Docker;
  readonly owner: string;
  readonly images: DockerImages;
  readonly host: EngineHost;
  readonly onDestroyed: (sandbox: DockerSandbox) => void;
}

interface Started {
  readonly container: Docker.Container;
  readonly hosted: HostedContainer;
  readonly processes: ContainerProcesses;
}

export class DockerSandbox implements Sandbox {
  readonly id: string;
  readonly #spec: SandboxSpec;
  readonly #engine: DockerParts;
  readonly #image: EngineImage;
  readonly #running = new Map<ContainerCommand, Promise<unknown>>();
  #container: Docker.Container | undefined;
  #started: Started | undefined;
  /** What the image has where the workspace was laid over it. */
  #below: Tree | undefined;
  #usage: Usage = {};
  #state: "open" | "quiesced" | "snapshot" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, engine: DockerParts) {
    this.id = spec.id;
    this.#spec = spec;
    this.#engine = engine;
    this.#image = engine.images.engineImageOf(spec.image);
  }

  /** A running container; nothing of it remains if any part fails. */
  static async create(spec: SandboxSpec, engine: DockerParts): Promise<DockerSandbox> {
    const sandbox = new DockerSandbox(spec, engine);
    sandbox.#image.snapshot?.use();
    try {
      await sandbox.#start();
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      throw setupFailure(spec.id, cause);
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    const { container, processes } = this.#parts;
    const startedAt = performance.now();
    const { outputBytes } = this.#spec.limits;
    const running = new ContainerCommand({
      container,
      processes,
      command,
      workdir: this.#workdir,
      outputBytes: Math.min(outputBytes, command.outputBytes ?? outputBytes),
      isAlone: () => this.#running.size <= 1,
    });
    const before = this.#counted();
    const ended = before.then(() => running.run());
    this.#running.set(running, ended);
    const outcome = await ended.finally(() => this.#running.delete(running));
    const usage = differenceOf(await before, await this.#used());
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

  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser = "agent"): Promise<void> {
    this.#assertIdle();
    await this.#parts.hosted.putTar(directory, tar, owner);
  }

  async getTar(directory: string): Promise<Uint8Array> {
    if (this.#state === "quiesced") return packContainer(this.#parts.container, directory);
    this.#assertIdle();
    return this.#parts.hosted.getTar(directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "quiesced";
    for (const command of this.#running.keys()) command.mark("cancelled");
    this.#usage = await this.#counted();
    // With the first process the kernel ends the whole PID namespace: whoever might have meddled with it inside.
    await this.#container?.kill().catch(ignoreMissing);
    await this.#started?.hosted.closeNetwork();
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
    return this.#started?.hosted.isModelUnreachable ?? false;
  }

  get modelTimeMs(): number {
    return this.#started?.hosted.modelTimeMs ?? 0;
  }

  get hostRoot(): string | undefined {
    return this.#state === "open" ? this.#started?.hosted.hostRoot : undefined;
  }

  get seal(): Sandbox["seal"] {
    const { hosted } = this.#parts;
    return hosted.seal === undefined ? undefined : (order) => hosted.seal!(order);
  }

  async stats(): Promise<Usage> {
    const usage = await this.#used();
    const nDenied = await this.#started?.hosted.nDenied().catch(() => undefined);
    return { ...usage, ...(nDenied === undefined ? {} : { nDenied }) };
  }

  async setNetwork(network: Network): Promise<void> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    await this.#parts.hosted.setNetwork(network);
  }

  async proveNetwork(): Promise<NetworkProof> {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    return this.#parts.hosted.proveNetwork();
  }

  /** Of a quiesced one too: then it is what a trial left. */
  async snapshot(): Promise<Snapshot> {
    if (this.#state !== "quiesced") this.#assertIdle();
    const { docker, images, owner } = this.#engine;
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
    const wasOpen = this.#state === "open";
    this.#state = "destroyed";
    for (const command of this.#running.keys()) command.mark("destroyed");
    if (wasOpen) this.#usage = await this.#counted();
    await this.#container?.remove({ force: true, v: true }).catch(ignoreMissing);
    await this.#engine.host.close(this.id);
    await Promise.allSettled(this.#running.values());
    await this.#image.snapshot?.leave();
    this.#engine.onDestroyed(this);
  }

  get #workdir(): string {
    return this.#spec.workdir ?? WORKSPACE;
  }

  get #parts(): Started {
    if (this.#started === undefined) throw new Error(`sandbox ${this.id} was not started`);
    return this.#started;
  }

  async #start(): Promise<void> {
    const { docker, owner, host } = this.#engine;
    const spec = this.#spec;
    const mounts = await Promise.all(spec.mounts.map((mount) => host.shown(spec.id, mount)));
    const etc = await host.open(spec.id);
    const options = containerOptions({ spec, image: this.#image.name, owner, mounts, etc });
    const container = await docker.createContainer(options);
    this.#container = container;
    await this.#layWorkspace(container);
    await container.start();
    const { State, GraphDriver } = await container.inspect();
    const merged = mergedDirectory(GraphDriver);
    const hosted = await host.adopt(
      spec.id,
      { containerId: container.id, pid: State.Pid, ...(merged === undefined ? {} : { merged }) },
      spec.network,
    );
    await hosted.addAgentAccount();
    if (spec.patch !== undefined) await hosted.apply(spec.patch, this.#workdir);
    this.#started = { container, hosted, processes: new ContainerProcesses(container, hosted) };
    void hosted.lost.then(() => this.#lose());
  }

  /** Its network has ended with its host's side of it: nothing goes on without a result (B3). */
  async #lose(): Promise<void> {
    for (const command of this.#running.keys()) command.mark("lost");
    await this.#container?.kill().catch(() => undefined);
  }

  async #layWorkspace(container: Docker.Container): Promise<void> {
    const { workspace, image } = this.#spec;
    this.#below = this.#image.below;
    if (workspace.directory === undefined || this.#image.workspace === workspace.digest) return;
    this.#below = await this.#engine.images.readTreeIfThere(image, this.#workdir);
    const tar = await workspaceTar({ ...workspace, directory: workspace.directory }, this.#workdir);
    await container.putArchive(Buffer.from(tar), { path: "/" });
  }

  /** Until now; once it has ended, until then: its counters go with its container. */
  async #used(): Promise<Usage> {
    return this.#state === "open" ? this.#counted() : this.#usage;
  }

  /** Counters that cannot be read are absent. */
  async #counted(): Promise<Usage> {
    return (await this.#started?.hosted.usage().catch(() => undefined)) ?? {};
  }

  #assertIdle(): void {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}

/** Where the engine's overlay driver shows a running container's files; other drivers have no such place. */
function mergedDirectory(driver: { readonly Name: string; readonly Data: unknown }): string | undefined {
  if (driver?.Name !== "overlay2") return undefined;
  return (driver.Data as { readonly MergedDir?: string } | null)?.MergedDir;
}
