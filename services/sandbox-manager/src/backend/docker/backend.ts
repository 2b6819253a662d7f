/**
 * Owns the docker backend: a daemon on this host, reached through its API. Does not pull images: the only
 * image so far is the host image, imported once.
 *
 * The model endpoint is a listener opened inside the container's network namespace, which needs root here and
 * a daemon whose processes this host sees. Without it a sandbox that needs the endpoint is refused: a bridge
 * network instead would reach far more than the model.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import Docker from "dockerode";
import { prepareHostImage } from "../host-image.js";
import { claim, ownerMark, release } from "../owner.js";
import { TreeStore } from "../tree-store.js";
import type { Availability, Image, ImageSpec, Sandbox, SandboxBackend, SandboxSpec } from "../types.js";
import { SANDBOX_UID, type SweepReport, type Tree, type TreeSource } from "../types.js";
import { DockerSandbox, OWNER_LABEL } from "./sandbox.js";

export interface DockerOptions {
  readonly stateDirectory: string;
  /** The daemon's socket; DOCKER_HOST or the default socket when absent. */
  readonly socketPath?: string;
}

export class DockerBackend implements SandboxBackend {
  readonly name = "docker" as const;
  readonly isInsecure = false;
  readonly #options: DockerOptions;
  readonly #docker: Docker;
  readonly #sandboxes = new Set<DockerSandbox>();
  #trees: TreeStore | undefined;
  #image: Promise<Image> | undefined;

  constructor(options: DockerOptions) {
    this.#options = options;
    this.#docker = new Docker(options.socketPath === undefined ? {} : { socketPath: options.socketPath });
  }

  async availability(): Promise<Availability> {
    if (process.platform !== "linux")
      return { ok: false, reason: "only a daemon on a Linux host is supported" };
    if (process.getuid?.() !== 0)
      return { ok: false, reason: "opening the model endpoint inside a container needs root" };
    try {
      await this.#docker.ping();
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `the Docker daemon does not answer: ${(error as Error).message}` };
    }
  }

  async start(): Promise<SweepReport> {
    claim(this.#options.stateDirectory);
    const containers = await this.#sweep();
    mkdirSync(path.join(this.#options.stateDirectory, "images"), { recursive: true });
    // Bind mounts are read as the sandbox's user, who owns the trees here as in runc.
    this.#trees = new TreeStore(path.join(this.#options.stateDirectory, "trees"), SANDBOX_UID);
    return { processes: 0, mounts: 0, cgroups: 0, containers, directories: 0 };
  }

  prepareImage(_spec: ImageSpec): Promise<Image> {
    this.#image ??= this.#importHostImage();
    return this.#image;
  }

  async #importHostImage(): Promise<Image> {
    const built = prepareHostImage(path.join(this.#options.stateDirectory, "images"));
    const reference = `mortise-host:${built.digest.slice(0, 16)}`;
    const isThere = await this.#docker
      .getImage(reference)
      .inspect()
      .then(() => true)
      .catch(() => false);
    if (!isThere) await this.#import(built.location, reference);
    return { digest: built.digest, location: reference };
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    if (this.#trees === undefined)
      throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: "the backend was not started" });
    return this.#trees.put(source);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    const sandbox = await DockerSandbox.create(spec, {
      docker: this.#docker,
      owner: ownerMark(this.#options.stateDirectory),
      onDestroyed: (gone) => this.#sandboxes.delete(gone),
    });
    this.#sandboxes.add(sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes].map((sandbox) => sandbox.destroy()));
    await this.#sweep();
    release(this.#options.stateDirectory);
  }

  async #sweep(): Promise<number> {
    const label = `${OWNER_LABEL}=${ownerMark(this.#options.stateDirectory)}`;
    const left = await this.#docker.listContainers({ all: true, filters: { label: [label] } });
    for (const { Id } of left) await this.#docker.getContainer(Id).remove({ force: true, v: true });
    return left.length;
  }

  async #import(directory: string, reference: string): Promise<void> {
    const tar = spawn("tar", ["-C", directory, "-c", "."], { stdio: ["ignore", "pipe", "inherit"] });
    const [repo, tag] = reference.split(":") as [string, string];
    const progress = await this.#docker.importImage(tar.stdout, { repo, tag });
    await new Promise<void>((resolve, reject) => {
      this.#docker.modem.followProgress(progress, (error: Error | null) =>
        error ? reject(error) : resolve(),
      );
    });
  }
}
