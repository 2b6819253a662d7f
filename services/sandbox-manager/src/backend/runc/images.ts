/**
 * Owns what the images of the runc backend are made of: a stack of directories, and the owner and mode of its root.
 * Images are named by digest; where their layers lie is known here and nowhere else. Does not mount.
 *
 * Below the state directory: `images/` host images, `store/` layers of pulled ones, `bases/` what is laid over them.
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { RootAttributes } from "../../images/layer/entry-writer.js";
import { defaultsOf } from "../../images/manifest.js";
import type { RegistryOptions } from "../../images/registry/registry-source.js";
import { ImageStore } from "../../images/store/image-store.js";
import { prepareHostImage } from "../host-image.js";
import type { Image, ImageSpec, Tree } from "../types.js";
import { baseLayer } from "./base-layer.js";
import { readLayersTree } from "./image-tree.js";
import type { HeldLayer } from "./snapshots.js";

/** What an overlay is mounted from. */
export interface RootStack {
  /** Topmost first. */
  readonly layers: readonly string[];
  /** Of the root directory. */
  readonly root: RootAttributes;
  /** Layers of snapshots among them, which must not go while this stack is in use. */
  readonly held: readonly HeldLayer[];
}

const PLAIN_ROOT: RootAttributes = { mode: 0o755, uid: 0, gid: 0 };

export class RuncImages {
  readonly #directory: string;
  readonly #registry: Partial<RegistryOptions>;
  readonly #stacks = new Map<string, RootStack>();
  readonly #trees = new Map<string, Promise<Tree>>();
  readonly #basesOfTrees = new WeakMap<Tree, readonly string[]>();
  #host: Promise<Image> | undefined;
  #store: ImageStore | undefined;

  constructor(stateDirectory: string, registry: Partial<RegistryOptions>) {
    this.#directory = stateDirectory;
    this.#registry = registry;
    for (const name of ["images", "bases"]) mkdirSync(path.join(stateDirectory, name), { recursive: true });
  }

  prepare(spec: ImageSpec): Promise<Image> {
    if (spec.kind === "engine")
      return Promise.reject(
        new MortiseError({
          code: "MORTISE_SANDBOX_SETUP",
          message: `image ${spec.name} is at a Docker engine, which runc does not read.`,
        }),
      );
    if (spec.kind !== "host") return this.#pull(spec);
    const host = this.#host ?? Promise.resolve().then(() => this.#prepareHost());
    this.#host = host;
    // What failed once may work when there is space again.
    host.catch(() => {
      this.#host = undefined;
    });
    return host;
  }

  /** Names a stack made of a sandbox. */
  add(digest: string, stack: RootStack): void {
    this.#stacks.set(digest, stack);
  }

  forget(digest: string): void {
    this.#stacks.delete(digest);
    for (const key of this.#trees.keys()) if (key.startsWith(`${digest} `)) this.#trees.delete(key);
  }

  /** Throws MORTISE_SANDBOX_SETUP for an image this backend did not prepare, and for a snapshot that was released. */
  stackOf(image: Image): RootStack {
    const stack = this.#stacks.get(image.digest);
    if (stack !== undefined) return stack;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `image ${image.digest} is not prepared, or is a snapshot that was released.`,
    });
  }

  /** Read once an image and directory. */
  readTree(image: Image, directory: string): Promise<Tree> {
    const { layers } = this.stackOf(image);
    const key = `${image.digest} ${directory}`;
    let reading = this.#trees.get(key);
    if (reading === undefined) {
      reading = readLayersTree(layers, directory);
      this.#trees.set(key, reading);
      reading.then(
        (tree) => this.#basesOfTrees.set(tree, layers),
        () => this.#trees.delete(key),
      );
    }
    return reading;
  }

  /** The layers a tree was read from, or undefined when it was not read here. */
  layersOfTree(tree: Tree): readonly string[] | undefined {
    return this.#basesOfTrees.get(tree);
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }

  #prepareHost(): Image {
    const { digest, location } = prepareHostImage(path.join(this.#directory, "images"));
    this.#stacks.set(digest, { layers: [location], root: PLAIN_ROOT, held: [] });
    return { digest, kind: "host", defaults: { environment: {} } };
  }

  async #pull(spec: Exclude<ImageSpec, { kind: "host" | "engine" }>): Promise<Image> {
    this.#store ??= new ImageStore({
      directory: path.join(this.#directory, "store"),
      registry: this.#registry,
    });
    const stored = await this.#store.pull(spec);
    const layers = stored.layers.map(({ directory }) => directory);
    const base = baseLayer(path.join(this.#directory, "bases"), layers);
    const digest = stored.digest.replace(/^sha256:/, "");
    this.#stacks.set(digest, { layers: [base, ...layers], root: stored.root ?? PLAIN_ROOT, held: [] });
    return { digest, kind: spec.kind, defaults: defaultsOf(stored.config) };
  }
}
