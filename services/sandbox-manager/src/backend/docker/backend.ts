/**
 * Owns the docker backend: one engine, reached through its API, and the sandboxes that live there. Does not contain a
 * sandbox's life (sandbox.ts), a command's (command.ts), an image's (images.ts) or what the engine's host does (host/).
 *
 * The network of a container is `none`, and everything it may reach is a listener opened inside its namespace by the
 * engine's host: by this process, which needs root, or elsewhere by a helper there. A bridge network instead would
 * reach far more.
 */
import { realpathSync } from "node:fs";
import path from "node:path";
import type Docker from "dockerode";
import { hostPlatform } from "../../images/manifest.js";
import type { AllowedHostRules } from "../network/index.js";
import { claim, ownerMark, release } from "../owner.js";
import { CgroupHost } from "../runc/cgroup.js";
import { checkSpec, setupError } from "../setup-error.js";
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
import {
  connectEngine,
  type EngineAddress,
  type EngineSettings,
  engineAddress,
  ignoreMissing,
  OWNER_LABEL,
} from "./engine.js";
import { explained } from "./engine-trust.js";
import { LocalHost } from "./host/local-host.js";
import type { EngineHost } from "./host/types.js";
import { DockerImages } from "./images.js";
import { RemoteHost } from "./remote/remote-host.js";
import { DockerSandbox } from "./sandbox.js";

export interface DockerOptions {
  readonly stateDirectory: string;
  /** The engine of this host when absent. */
  readonly engine?: EngineSettings;
  /** File with registry logins; Docker's own when absent. */
  readonly dockerConfig?: string;
  readonly allowedHosts?: AllowedHostRules;
  /** Told at every start what an operator should not forget. */
  readonly warn?: (message: string) => void;
}

interface EngineFacts {
  readonly SecurityOptions?: readonly string[] | null;
  readonly OSType?: string;
  readonly Architecture?: string;
}

interface Started {
  readonly owner: string;
  readonly trees: TreeStore;
  readonly images: DockerImages;
  readonly host: EngineHost;
}

/** As engines name them. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x86_64: "amd64", aarch64: "arm64" };

export class DockerBackend implements SandboxBackend {
  readonly name = "docker" as const;
  readonly isInsecure = false;
  readonly #options: DockerOptions;
  readonly #address: EngineAddress;
  readonly #docker: Docker;
  readonly #sandboxes = new Map<string, DockerSandbox>();
  #started: Started | undefined;

  constructor(options: DockerOptions) {
    this.#options = options;
    this.#address = engineAddress(options.engine);
    this.#docker = connectEngine(this.#address);
  }

  async availability(): Promise<Availability> {
    if (process.platform !== "linux")
      return { ok: false, reason: "only a manager and an engine on Linux are supported" };
    const address = this.#address;
    if (!address.ok) return address;
    if (process.getuid?.() !== 0)
      return {
        ok: false,
        reason:
          address.kind === "local"
            ? "opening the model endpoint inside a container needs root"
            : "giving files to the user of sandboxes needs root",
      };
    if (address.kind === "local" && CgroupHost.detect() === undefined)
      return { ok: false, reason: "no usable cgroup hierarchy is mounted" };
    try {
      const reason = whyUnfit((await this.#docker.info()) as EngineFacts, address.kind);
      return reason === undefined ? { ok: true } : { ok: false, reason };
    } catch (error) {
      const at = address.kind === "local" ? "" : ` at ${address.host}:${address.port}`;
      return { ok: false, reason: `the Docker engine${at} does not answer: ${explained(error as Error)}` };
    }
  }

  async start(): Promise<SweepReport> {
    // Files shown to sandboxes must be readable by their user, whatever umask this process was given.
    process.umask(0o022);
    claim(this.#options.stateDirectory);
    const stateDirectory = realpathSync(this.#options.stateDirectory);
    const owner = ownerMark(stateDirectory);
    const containers = await this.#sweep(owner);
    const { dockerConfig } = this.#options;
    const images = new DockerImages({
      docker: this.#docker,
      stateDirectory,
      owner,
      ...(dockerConfig === undefined ? {} : { dockerConfig }),
    });
    const host = this.#hostOf(owner, path.join(stateDirectory, "run"), images);
    const directories = await host.start();
    this.#started = {
      owner,
      images,
      host,
      // Mounts are read as the sandbox's user, who owns the trees here as in runc.
      trees: new TreeStore(path.join(stateDirectory, "trees"), SANDBOX_UID),
    };
    return { processes: 0, mounts: 0, cgroups: 0, containers, directories };
  }

  #hostOf(owner: string, runDirectory: string, images: DockerImages): EngineHost {
    const { allowedHosts = {}, warn = () => undefined } = this.#options;
    warn("what a sandbox writes is not limited on Docker: storage_mb and sandbox.diskBytes do not hold");
    if (this.#address.ok && this.#address.kind === "remote") {
      const { host, port, trust } = this.#address;
      if (trust === undefined)
        warn(
          `INSECURE: the Docker engine at ${host}:${port} is spoken to without TLS (sandbox.docker.allowPlainTcp); whoever reaches it is root there, and whoever listens sees session tokens`,
        );
      return new RemoteHost({ docker: this.#docker, owner, images, allowedHosts, warn });
    }
    const cgroups = CgroupHost.detect();
    if (cgroups === undefined) throw setupError("no usable cgroup hierarchy is mounted");
    return new LocalHost({ runDirectory, cgroups, allowedHosts });
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
    const { owner, images, host } = this.#parts;
    checkSpec(spec, this.#sandboxes.has(spec.id));
    const sandbox = await DockerSandbox.create(spec, {
      docker: this.#docker,
      owner,
      images,
      host,
      onDestroyed: (gone) => this.#sandboxes.delete(gone.id),
    });
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    const { owner, host } = this.#parts;
    this.#started = undefined;
    await host.stop();
    await this.#sweep(owner);
    release(this.#options.stateDirectory);
  }

  get #parts(): Started {
    if (this.#started === undefined) throw setupError("the backend was not started");
    return this.#started;
  }

  /** Containers first: an image or a volume in use stays. @returns how many containers that were */
  async #sweep(owner: string): Promise<number> {
    const filters = { label: [`${OWNER_LABEL}=${owner}`] };
    const containers = await this.#docker.listContainers({ all: true, filters });
    for (const { Id } of containers)
      await this.#docker.getContainer(Id).remove({ force: true, v: true }).catch(ignoreMissing);
    for (const { Id } of await this.#docker.listImages({ filters }))
      await this.#docker.getImage(Id).remove({ force: true }).catch(ignoreMissing);
    const { Volumes: volumes } = await this.#docker.listVolumes({ filters });
    for (const { Name } of volumes ?? [])
      await this.#docker.getVolume(Name).remove({ force: true }).catch(ignoreMissing);
    return containers.length;
  }
}

/** Why the engine's containers could not be what sandboxes have to be. */
function whyUnfit(
  { SecurityOptions, OSType, Architecture = "" }: EngineFacts,
  kind: "local" | "remote",
): string | undefined {
  const mapped = (SecurityOptions ?? []).find((option) => /name=(userns|rootless)/.test(option));
  if (mapped !== undefined) return `the Docker engine gives containers other user ids (${mapped})`;
  if (kind === "local") return undefined;
  if (OSType !== "linux") return `the Docker engine runs ${OSType} containers`;
  const there = ARCHITECTURES[Architecture] ?? Architecture;
  const { architecture: here } = hostPlatform();
  return there === here
    ? undefined
    : `the Docker engine is on ${there} and this host on ${here}: the host image and harness runtimes are of this host`;
}
