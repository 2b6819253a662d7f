/**
 * Owns the images of the docker backend: how one comes to the engine, what it is called there, and how long a snapshot
 * is kept. What the engine has pulled or loaded stays with it: it is the engine's to remove.
 */
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import { findLocally } from "../../images/local/local-source.js";
import { hostPlatform } from "../../images/manifest.js";
import { formatReference, parseReference } from "../../images/reference.js";
import { credentialFor, defaultDockerConfig } from "../../images/registry/credentials.js";
import { prepareHostImage } from "../host-image.js";
import type { Image, ImageSpec, Tree } from "../types.js";
import { NoSuchDirectory, readContainerTree } from "./archive-tree.js";
import { followed, OWNER_LABEL } from "./engine.js";
import { savedArchive } from "./saved-archive.js";
import type { SnapshotImage } from "./snapshot-image.js";

/** Of a digest, in the names of what was not pulled by name. */
const TAG_LENGTH = 16;

export interface DockerImagesOptions {
  readonly docker: Docker;
  readonly stateDirectory: string;
  readonly owner: string;
  /** File with registry logins; Docker's own when absent. */
  readonly dockerConfig?: string;
}

/** An image at the engine. */
export interface EngineImage {
  /** Name or id. */
  readonly name: string;
  /** Of the tree laid into it, when it is a snapshot. */
  readonly workspace?: string;
  readonly snapshot?: SnapshotImage;
  /** What that tree was laid over. */
  readonly below?: Tree;
}

export class DockerImages {
  readonly #options: DockerImagesOptions;
  readonly #engineImages = new Map<string, EngineImage>();
  readonly #preparing = new Map<string, Promise<Image>>();
  readonly #trees = new Map<string, Promise<Tree>>();

  constructor(options: DockerImagesOptions) {
    this.#options = options;
    mkdirSync(path.join(options.stateDirectory, "images"), { recursive: true });
  }

  /** One flight an image. A tag is asked for again each time, a digest only once. */
  prepare(spec: ImageSpec): Promise<Image> {
    const key = JSON.stringify(spec);
    const known = this.#preparing.get(key);
    if (known !== undefined) return known;
    const preparing = this.#prepare(spec);
    this.#preparing.set(key, preparing);
    const isFixed =
      spec.kind === "host" ||
      (spec.kind === "registry" && parseReference(spec.reference).digest !== undefined);
    preparing.then(
      () => isFixed || this.#preparing.delete(key),
      () => this.#preparing.delete(key),
    );
    return preparing;
  }

  /** Throws MORTISE_SANDBOX_SETUP for an image this backend did not prepare, and for a snapshot that was released. */
  engineImageOf(image: Image): EngineImage {
    const found = this.#engineImages.get(image.digest);
    if (found !== undefined) return found;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `image ${image.digest} is not prepared, or is a snapshot that was released.`,
    });
  }

  add(digest: string, image: EngineImage): void {
    this.#engineImages.set(digest, image);
  }

  forget(digest: string): void {
    this.#engineImages.delete(digest);
    for (const key of this.#trees.keys()) if (key.startsWith(`${digest} `)) this.#trees.delete(key);
  }

  /** Read once an image and directory, from a container that is never started. */
  readTree(image: Image, directory: string): Promise<Tree> {
    const key = `${image.digest} ${directory}`;
    let reading = this.#trees.get(key);
    if (reading === undefined) {
      reading = this.#readTree(this.engineImageOf(image).name, directory);
      this.#trees.set(key, reading);
      reading.catch(() => this.#trees.delete(key));
    }
    return reading;
  }

  /** As `readTree`, undefined where the image has no such directory. */
  async readTreeIfThere(image: Image, directory: string): Promise<Tree | undefined> {
    try {
      return await this.readTree(image, directory);
    } catch (error) {
      if (error instanceof NoSuchDirectory) return undefined;
      throw error;
    }
  }

  async #readTree(name: string, directory: string): Promise<Tree> {
    const { docker, owner } = this.#options;
    const container = await docker.createContainer({
      Image: name,
      Entrypoint: ["/"],
      Labels: { [OWNER_LABEL]: owner },
      HostConfig: { NetworkMode: "none" },
    });
    try {
      return await readContainerTree(container, directory);
    } finally {
      await container.remove({ force: true, v: true });
    }
  }

  async #prepare(spec: ImageSpec): Promise<Image> {
    switch (spec.kind) {
      case "host":
        return this.#host();
      case "registry":
        return this.#pull(spec.reference);
      case "local":
        return this.#load(spec);
      case "engine":
        return this.#have(spec.name);
    }
  }

  async #host(): Promise<Image> {
    const built = prepareHostImage(path.join(this.#options.stateDirectory, "images"));
    const name = `mortise-host:${built.digest.slice(0, TAG_LENGTH)}`;
    if ((await this.#inspect(name)) === undefined) await this.#import(built.location, name);
    return this.#made(built.digest, name, "host");
  }

  async #pull(reference: string): Promise<Image> {
    const parsed = parseReference(reference);
    const name = formatReference(parsed);
    const isThere = parsed.digest !== undefined && (await this.#inspect(name)) !== undefined;
    if (!isThere) await this.#pullFrom(parsed.registry, name);
    const found = await this.#inspect(name);
    if (found === undefined) throw unusable(name, "the engine does not have what it said it pulled");
    // The engine gives a multi-platform image's index here.
    const digest = found.RepoDigests.map((one) => one.split("@sha256:")[1]).find((one) => one !== undefined);
    return this.#made(digest ?? found.Id.replace("sha256:", ""), name, "registry");
  }

  async #pullFrom(registry: string, name: string): Promise<void> {
    const { docker, dockerConfig } = this.#options;
    const login = credentialFor(registry, dockerConfig ?? defaultDockerConfig());
    const serveraddress = registry;
    const authconfig =
      login === undefined
        ? {}
        : login.kind === "identity"
          ? { authconfig: { identitytoken: login.token, serveraddress } }
          : { authconfig: { username: login.user, password: login.password, serveraddress } };
    try {
      await followed(docker, await docker.pull(name, authconfig));
    } catch (cause) {
      throw new MortiseError({
        code: codeOf(cause as Error & { statusCode?: number }),
        message: `${name}: ${(cause as Error).message}`,
        cause,
      });
    }
  }

  async #load(spec: Extract<ImageSpec, { kind: "local" }>): Promise<Image> {
    const found = await findLocally(spec.path, spec.name, hostPlatform());
    const digest = found.digest.replace("sha256:", "");
    const name = `mortise-local:${digest.slice(0, TAG_LENGTH)}`;
    const { docker } = this.#options;
    if ((await this.#inspect(name)) === undefined)
      await followed(docker, await docker.loadImage(savedArchive(found, name))).catch((cause: unknown) => {
        throw unusable(spec.path, (cause as Error).message);
      });
    return this.#made(digest, name, "local");
  }

  async #have(name: string): Promise<Image> {
    const found = await this.#inspect(name);
    if (found === undefined) throw unusable(name, "the engine does not have it");
    return this.#made(found.Id.replace("sha256:", ""), name, "engine");
  }

  async #made(digest: string, name: string, kind: ImageSpec["kind"]): Promise<Image> {
    const found = await this.#inspect(name);
    if (found === undefined) throw unusable(name, "the engine does not have it");
    const volumes = Object.keys(found.Config.Volumes ?? {});
    // The engine would put them on volumes beside the root file system: neither searched, nor kept, nor in a snapshot.
    if (volumes.length > 0)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_IMAGE_INVALID",
        message: `${name}: it declares volumes (${volumes.join(", ")}), which Docker keeps outside its root.`,
        fix: "Use the runc backend, or build the image without VOLUME.",
      });
    this.add(digest, { name });
    const pairs = (found.Config.Env ?? []).map((line): [string, string] => {
      const at = line.indexOf("=");
      return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
    });
    const workdir = found.Config.WorkingDir;
    return {
      digest,
      kind,
      defaults: { environment: Object.fromEntries(pairs), ...(workdir ? { workdir } : {}) },
    };
  }

  async #inspect(name: string): Promise<Docker.ImageInspectInfo | undefined> {
    try {
      return await this.#options.docker.getImage(name).inspect();
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode === 404) return undefined;
      throw error;
    }
  }

  async #import(directory: string, name: string): Promise<void> {
    const { docker } = this.#options;
    const tar = spawn("tar", ["-C", directory, "-c", "."], { stdio: ["ignore", "pipe", "inherit"] });
    const [repo, tag] = name.split(":") as [string, string];
    await followed(docker, await docker.importImage(tar.stdout, { repo, tag }));
  }
}

/** The engine answers with words, and with a status only when it fails before it begins. */
function codeOf({ message, statusCode }: Error & { statusCode?: number }) {
  if (/unauthorized|denied|authentication|no basic auth/i.test(message))
    return "MORTISE_SANDBOX_IMAGE_DENIED";
  if (statusCode === 404 || /not found|manifest unknown|no matching manifest|HTTP 404/i.test(message))
    return "MORTISE_SANDBOX_IMAGE_UNKNOWN";
  return "MORTISE_SANDBOX_IMAGE_REGISTRY";
}

function unusable(name: string, why: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_INVALID", message: `${name}: ${why}.` });
}
