/**
 * Owns unpacked layers on disk: each is there whole or not at all, is unpacked once however many images and
 * callers want it, and outlives the process. Does not evict: a layer in use must not disappear under a mount.
 *
 * Layout: `<root>/layers/<key>/{root/, layer.json}`, `<root>/layers/unfinished-<pid>-<n>/`. Keys are short, because
 * the paths of all layers of an image must fit into the 4 KiB of mount options.
 *
 * L1  A layer that took nothing from the layers below is stored by its diff id and shared by every image; one that
 *     did (hard links to lower files, directories it does not list) by its chain id, and is right over these only.
 * L2  A directory gets its final name after everything in it is written and checked.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import type { DevicePolicy } from "../layer/entry-writer.js";
import type { LayerLimits } from "../layer/limits.js";
import type { UnpackedLayer, UnpackOptions } from "../layer/unpack.js";
import { isPassedOver } from "../registry/registry-source.js";
import type { LayerBlob } from "../source.js";
import type { UnpackWorkers } from "./unpack-workers.js";

const FORMAT = "mortise-layer/1";
/** 128 bits: no two layers meet by chance, and `id` in the record tells if they were made to. */
const KEY_BYTES = 16;

const Layer = z.object({
  format: z.literal(FORMAT),
  id: z.string(),
  compressedBytes: z.number(),
  bytes: z.number(),
  entries: z.number(),
  needsLower: z.boolean(),
  root: z.object({ mode: z.number(), uid: z.number(), gid: z.number() }).nullable(),
  skipped: z.array(z.object({ name: z.string(), reason: z.enum(["device", "xattr"]) })),
});

export interface StoredLayer extends UnpackedLayer {
  /** Absolute path of the tree, as an overlay takes it. */
  readonly directory: string;
}

export interface LayerRequest {
  readonly diffId: string;
  /** Digest over this and all diff ids below, as OCI defines it. */
  readonly chainId: string;
  readonly blob: LayerBlob;
  /** Trees of the layers below, topmost first. */
  readonly lower: () => Promise<readonly string[]>;
  readonly paths: readonly string[] | undefined;
  readonly signal: AbortSignal | undefined;
}

export class LayerStore {
  readonly #directory: string;
  readonly #workers: UnpackWorkers;
  readonly #devices: DevicePolicy;
  readonly #limits: LayerLimits;
  readonly #flights = new Map<string, Promise<void>>();
  #nUnfinished = 0;

  constructor(root: string, workers: UnpackWorkers, devices: DevicePolicy, limits: LayerLimits) {
    this.#directory = path.join(root, "layers");
    this.#workers = workers;
    this.#devices = devices;
    this.#limits = limits;
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    this.#sweep();
  }

  /** The layer, unpacked now or before. Callers of one layer share one flight; only an abort is not shared. */
  async get(request: LayerRequest): Promise<StoredLayer> {
    const flightKey = this.#id("diff", request);
    for (;;) {
      request.signal?.throwIfAborted();
      const stored = this.find(request);
      if (stored !== undefined) return stored;
      const flight = this.#flights.get(flightKey);
      if (flight !== undefined) {
        await flight;
        continue;
      }
      await this.#fly(flightKey, request);
    }
  }

  /** The layer if it is stored. */
  find(request: Pick<LayerRequest, "diffId" | "chainId" | "paths">): StoredLayer | undefined {
    return this.#read(this.#id("diff", request)) ?? this.#read(this.#id("chain", request));
  }

  async #fly(key: string, request: LayerRequest): Promise<void> {
    const flight = this.#unpack(request);
    const shared = flight.catch((error: unknown) => {
      // Whoever asked first may have lost interest; the others have not.
      if (!request.signal?.aborted) throw error;
    });
    shared.catch(() => {});
    this.#flights.set(key, shared);
    try {
      await flight;
    } finally {
      this.#flights.delete(key);
    }
  }

  async #unpack(request: LayerRequest): Promise<void> {
    const { diffId, blob, lower, paths, signal } = request;
    let failure: unknown;
    for (const place of blob.places) {
      const unfinished = path.join(this.#directory, `unfinished-${process.pid}-${this.#nUnfinished++}`);
      const directory = path.join(unfinished, "root");
      try {
        mkdirSync(directory, { recursive: true, mode: 0o755 });
        const options: UnpackOptions = {
          directory,
          lower,
          diffId,
          blob: blob.descriptor && { digest: blob.descriptor.digest, size: blob.descriptor.size },
          devices: this.#devices,
          limits: this.#limits,
          paths,
        };
        const layer = await this.#workers.unpack(() => place(signal), options, signal);
        this.#publish(unfinished, layer, request);
        return;
      } catch (error) {
        if (!isPassedOver(error)) throw error;
        failure = error;
      } finally {
        rmSync(unfinished, { recursive: true, force: true });
      }
    }
    throw failure;
  }

  #publish(unfinished: string, layer: UnpackedLayer, request: LayerRequest): void {
    const id = this.#id(layer.needsLower ? "chain" : "diff", request);
    writeFileSync(path.join(unfinished, "layer.json"), JSON.stringify({ format: FORMAT, id, ...layer }));
    try {
      renameSync(unfinished, this.#place(id));
    } catch (error) {
      // Another process on the same store was faster.
      if (this.#read(id) === undefined) throw error;
    }
  }

  #read(id: string): StoredLayer | undefined {
    const record = path.join(this.#place(id), "layer.json");
    if (!existsSync(record)) return undefined;
    const { format: _, id: stored, ...layer } = Layer.parse(JSON.parse(readFileSync(record, "utf8")));
    return stored === id ? { ...layer, directory: path.join(this.#place(id), "root") } : undefined;
  }

  /** Everything the content of the tree depends on. */
  #id(by: "diff" | "chain", request: Pick<LayerRequest, "diffId" | "chainId" | "paths">): string {
    const { diffId, chainId, paths } = request;
    return JSON.stringify([by, by === "diff" ? diffId : chainId, this.#devices, paths ?? null]);
  }

  #place(id: string): string {
    const key = createHash("sha256").update(id).digest().subarray(0, KEY_BYTES).toString("base64url");
    return path.join(this.#directory, key);
  }

  /** Removes what processes that are gone left unfinished. */
  #sweep(): void {
    for (const name of readdirSync(this.#directory)) {
      const pid = /^unfinished-([0-9]+)-/.exec(name)?.[1];
      if (pid === undefined || (Number(pid) !== process.pid && existsSync(`/proc/${pid}`))) continue;
      rmSync(path.join(this.#directory, name), { recursive: true, force: true });
    }
  }
}
