/**
 * Owns images as sandboxes need them: a reference becomes a configuration and a stack of layer directories.
 * What is stored needs no network. Does not mount and does not start anything.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import type { DevicePolicy, RootAttributes } from "../layer/entry-writer.js";
import { DEFAULT_LAYER_LIMITS, type LayerLimits } from "../layer/limits.js";
import { findLocally } from "../local/local-source.js";
import { hostPlatform, type ImageConfig, invalid, type Platform, parseConfig } from "../manifest.js";
import { formatReference, parseReference } from "../reference.js";
import { defaultDockerConfig } from "../registry/credentials.js";
import { DEFAULT_HTTP } from "../registry/http.js";
import { findInRegistry, type RegistryOptions } from "../registry/registry-source.js";
import type { FoundImage } from "../source.js";
import { LayerStore, type StoredLayer } from "./layer-store.js";
import { UnpackWorkers } from "./unpack-workers.js";

export interface ImageStoreOptions {
  /** Made when missing; on a file system with `trusted.` attributes, and large enough for unpacked images. */
  readonly directory: string;
  readonly registry?: Partial<RegistryOptions>;
  readonly limits?: LayerLimits;
  readonly devices?: DevicePolicy;
  /** Layers unpacked at a time. */
  readonly concurrency?: number;
}

/** Where an image comes from. */
export type ImagePlace =
  | { readonly kind: "registry"; readonly reference: string }
  /** An OCI layout directory, or a tar of one, or what `docker save` writes. `name` when it holds several. */
  | { readonly kind: "local"; readonly path: string; readonly name?: string };

export interface PullOptions {
  readonly platform?: Platform;
  /** Only these paths of the image and what is below them. */
  readonly paths?: readonly string[];
  readonly signal?: AbortSignal;
}

export interface StoredImage {
  readonly digest: string;
  readonly config: ImageConfig;
  /** Topmost first, the order of an overlay's `lowerdir`. */
  readonly layers: readonly StoredLayer[];
  /** Of the topmost layer that states them: an overlay shows its own upper directory's instead. */
  readonly root: RootAttributes | null;
}

const StoredRecord = z.object({ digest: z.string(), config: z.string() });

export class ImageStore {
  readonly #directory: string;
  readonly #registry: RegistryOptions;
  readonly #workers: UnpackWorkers;
  readonly #layers: LayerStore;

  /** Throws MORTISE_SANDBOX_IMAGE_STORE where owners and markers could not be written. */
  constructor(options: ImageStoreOptions) {
    if (process.platform !== "linux" || process.getuid?.() !== 0)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_IMAGE_STORE",
        message: "unpacking images needs Linux and root: files keep their owners.",
      });
    this.#directory = options.directory;
    this.#registry = {
      rewrite: options.registry?.rewrite ?? [],
      dockerConfig: options.registry?.dockerConfig ?? defaultDockerConfig(),
      http: options.registry?.http ?? DEFAULT_HTTP,
    };
    this.#workers = new UnpackWorkers(options.concurrency ?? availableParallelism());
    this.#layers = new LayerStore(
      options.directory,
      this.#workers,
      options.devices ?? "skip",
      options.limits ?? DEFAULT_LAYER_LIMITS,
    );
    mkdirSync(path.join(options.directory, "images"), { recursive: true, mode: 0o700 });
  }

  /** The image with all its layers unpacked. An image named by digest and stored before is not asked for again. */
  async pull(place: ImagePlace, options: PullOptions = {}): Promise<StoredImage> {
    const platform = options.platform ?? hostPlatform();
    const shown = place.kind === "local" ? place.path : formatReference(parseReference(place.reference));
    const known =
      place.kind === "registry" ? this.#known(place.reference, platform, options.paths) : undefined;
    if (known !== undefined) return known;
    const found = await this.#find(place, platform, options.signal);
    const config = parseConfig(found.config, shown);
    if (config.diffIds.length !== found.layers.length)
      throw invalid(shown, `${found.layers.length} layers, but ${config.diffIds.length} diff ids`);
    if (config.os !== platform.os || (config.architecture || platform.architecture) !== platform.architecture)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
        message: `${shown} is for ${config.os}/${config.architecture}, not ${platform.os}/${platform.architecture}.`,
      });
    const image = assembled(found.digest, config, await this.#unpackAll(found, config, options));
    this.#remember(place, platform, found);
    return image;
  }

  /** Ends idle threads. Pulls that still run are not waited for; abort them first. */
  close(): Promise<void> {
    return this.#workers.close();
  }

  #find(place: ImagePlace, platform: Platform, signal: AbortSignal | undefined): Promise<FoundImage> {
    if (place.kind === "local") return findLocally(place.path, place.name, platform);
    return findInRegistry(parseReference(place.reference), platform, this.#registry, signal);
  }

  /** Layers, topmost first. One that fails ends the others. */
  async #unpackAll(found: FoundImage, config: ImageConfig, options: PullOptions): Promise<StoredLayer[]> {
    const failed = new AbortController();
    const signals = options.signal === undefined ? [failed.signal] : [options.signal, failed.signal];
    const chain = chainIds(config.diffIds);
    const layers: Promise<StoredLayer>[] = [];
    for (const [at, blob] of found.layers.entries()) {
      const below = layers.slice(0, at);
      const lower = async () => (await Promise.all(below)).map(({ directory }) => directory).reverse();
      const diffId = config.diffIds[at]!;
      const { paths } = options;
      layers.push(
        this.#layers.get({
          diffId,
          chainId: chain[at]!,
          blob,
          lower,
          paths,
          signal: AbortSignal.any(signals),
        }),
      );
    }
    try {
      return (await Promise.all(layers)).reverse();
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled(layers);
      throw error;
    }
  }

  #known(
    reference: string,
    platform: Platform,
    paths: readonly string[] | undefined,
  ): StoredImage | undefined {
    if (parseReference(reference).digest === undefined) return undefined;
    const text = readIfPresent(this.#record(reference, platform));
    if (text === undefined) return undefined;
    const { digest, config: json } = StoredRecord.parse(JSON.parse(text));
    const config = parseConfig(Buffer.from(json), reference);
    const chain = chainIds(config.diffIds);
    const layers = config.diffIds.map((diffId, at) =>
      this.#layers.find({ diffId, chainId: chain[at]!, paths }),
    );
    if (!layers.every((layer) => layer !== undefined)) return undefined;
    return assembled(digest, config, layers.reverse());
  }

  #remember(place: ImagePlace, platform: Platform, { digest, config }: FoundImage): void {
    if (place.kind === "local" || parseReference(place.reference).digest === undefined) return;
    const record = this.#record(place.reference, platform);
    const unfinished = `${record}.${process.pid}`;
    writeFileSync(unfinished, JSON.stringify({ digest, config: Buffer.from(config).toString() }));
    renameSync(unfinished, record);
  }

  #record(reference: string, platform: Platform): string {
    const key = JSON.stringify([parseReference(reference).digest, platform]);
    return path.join(this.#directory, "images", `${createHash("sha256").update(key).digest("hex")}.json`);
  }
}

function assembled(digest: string, config: ImageConfig, layers: readonly StoredLayer[]): StoredImage {
  return { digest, config, layers, root: layers.find(({ root }) => root !== null)?.root ?? null };
}

/** OCI's chain ids: the digest of a stack is that of the stack below, a space and the next diff id. */
export function chainIds(diffIds: readonly string[]): string[] {
  const chain: string[] = [];
  for (const diffId of diffIds) {
    const below = chain.at(-1);
    chain.push(
      below === undefined
        ? diffId
        : `sha256:${createHash("sha256").update(`${below} ${diffId}`).digest("hex")}`,
    );
  }
  return chain;
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw error;
  }
}
