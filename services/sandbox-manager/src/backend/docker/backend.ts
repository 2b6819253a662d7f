/**
 * Owns the docker backend: the engine of this host, reached through its API, and the sandboxes that live there.
 * Does not contain a sandbox's life (sandbox.ts), a command's (command.ts) or an image's (images.ts).
 *
 * The network of a container is `none`, and everything it may reach is a listener opened inside its namespace from
 * here, which needs root and an engine whose processes this host sees. A bridge network instead would reach far more.
 */
import { mkdirSync, readdirSync, realpathSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import Docker from "dockerode";
import { checkPaths } from "../mount-source.js";
import type { AllowedHostRules } from "../network/index.js";
import { claim, ownerMark, release } from "../owner.js";
import { CgroupHost } from "../runc/cgroup.js";
import { TreeStore } from "../tree-store.js";
import {
  type Availability,
  type Image,
  type ImageSpec,
  SANDBOX_UID,
  type Sandbox,
  type SandboxBackend,
  type SandboxSpec,
  type SweepReport,
  type Tree,
  type TreeSource,
} from "../types.js";
import { engineAddress, ignoreMissing, OWNER_LABEL } from "./engine.js";
import { DockerImages } from "./images.js";
import { DockerSandbox } from "./sandbox.js";

const SANDBOX_ID = /^[A-Za-z0-9_-]{1,100}$/;

export interface DockerOptions {
  readonly stateDirectory: string;
  /** The engine's socket; that of DOCKER_HOST or the default one when absent. */
  readonly socketPath?: string;
  /** File with registry logins; Docker's own when absent. */
  readonly dockerConfig?: string;
  readonly allowedHosts?: AllowedHostRules;
}

interface EngineFacts {
  readonly SecurityOptions?: readonly string[] | null;
}

interface Started {
  readonly owner: string;
  readonly trees: TreeStore;
  readonly images: DockerImages;
  readonly cgroups: CgroupHost;
  readonly runDirectory: string;
}

export class DockerBackend implements SandboxBackend {
  readonly name = "docker" as const;
  readonly isInsecure = false;
  readonly #options: DockerOptions;
  readonly #docker: Docker;
  readonly #sandboxes = new Map<string, DockerSandbox>();
  #started: Started | undefined;

  constructor(options: DockerOptions) {
    this.#options = options;
    const address = engineAddress(options.socketPath);
    this.#docker = new Docker(address.ok ? { socketPath: address.socketPath } : {});
  }

  async availability(): Promise<Availability> {
    if (process.platform !== "linux")
      return { ok: false, reason: "only an engine on a Linux host is supported" };
    if (process.getuid?.() !== 0)
      return { ok: false, reason: "opening the model endpoint inside a container needs root" };
    if (CgroupHost.detect() === undefined)
      return { ok: false, reason: "no usable cgroup hierarchy is mounted" };
    const address = engineAddress(this.#options.socketPath);
    if (!address.ok) return address;
    try {
      const { SecurityOptions: options = [] } = (await this.#docker.info()) as EngineFacts;
      const mapped = (options ?? []).find((option) => /name=(userns|rootless)/.test(option));
      return mapped === undefined
        ? { ok: true }
        : { ok: false, reason: `the Docker engine gives containers other user ids (${mapped})` };
    } catch (error) {
      return { ok: false, reason: `the Docker engine does not answer: ${(error as Error).message}` };
    }
  }

  async start(): Promise<SweepReport> {
    // Files shown to sandboxes must be readable by their user, whatever umask this process was given.
    process.umask(0o022);
    claim(this.#options.stateDirectory);
    const stateDirectory = realpathSync(this.#options.stateDirectory);
    const owner = ownerMark(stateDirectory);
    const cgroups = CgroupHost.detect();
    if (cgroups === undefined) throw setupError("no usable cgroup hierarchy is mounted");
    const runDirectory = path.join(stateDirectory, "run");
    const { containers, directories } = await this.#sweep(owner, runDirectory);
    const { dockerConfig } = this.#options;
    this.#started = {
      owner,
      cgroups,
      runDirectory,
      // Mounts are read as the sandbox's user, who owns the trees here as in runc.
      trees: new TreeStore(path.join(stateDirectory, "trees"), SANDBOX_UID),
      images: new DockerImages({
        docker: this.#docker,
        stateDirectory,
        owner,
        ...(dockerConfig === undefined ? {} : { dockerConfig }),
      }),
    };
    return { processes: 0, mounts: 0, cgroups: 0, containers, directories };
  }

  async prepareImage(spec: ImageSpec): Promise<Image> {
    return this.#parts.images.prepare(spec);
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    return this.#parts.trees.put(source);
  }

  async readTree(image: Image, directory: string): Promise<Tree> {
    return this.#parts.images.readTree(image, directory);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    const { owner, images, cgroups, runDirectory } = this.#parts;
    if (!SANDBOX_ID.test(spec.id)) throw setupError(`sandbox id ${JSON.stringify(spec.id)} is not allowed`);
    if (this.#sandboxes.has(spec.id)) throw setupError(`sandbox ${spec.id} exists already`);
    checkPaths(spec);
    const sandbox = await DockerSandbox.create(spec, {
      docker: this.#docker,
      owner,
      images,
      cgroups,
      runDirectory,
      allowedHosts: this.#options.allowedHosts ?? {},
      onDestroyed: (gone) => this.#sandboxes.delete(gone.id),
    });
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    const { owner, runDirectory } = this.#parts;
    this.#started = undefined;
    await this.#sweep(owner, runDirectory);
    release(this.#options.stateDirectory);
  }

  get #parts(): Started {
    if (this.#started === undefined) throw setupError("the backend was not started");
    return this.#started;
  }

  /** Containers first: an image in use stays. */
  async #sweep(owner: string, runDirectory: string): Promise<{ containers: number; directories: number }> {
    const filters = { label: [`${OWNER_LABEL}=${owner}`] };
    const containers = await this.#docker.listContainers({ all: true, filters });
    for (const { Id } of containers)
      await this.#docker.getContainer(Id).remove({ force: true, v: true }).catch(ignoreMissing);
    for (const { Id } of await this.#docker.listImages({ filters }))
      await this.#docker.getImage(Id).remove({ force: true }).catch(ignoreMissing);
    mkdirSync(runDirectory, { recursive: true, mode: 0o755 });
    const directories = readdirSync(runDirectory).length;
    rmSync(runDirectory, { recursive: true, force: true });
    mkdirSync(runDirectory, { mode: 0o755 });
    return { containers: containers.length, directories };
  }
}

function setupError(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message });
}
