/**
 * Owns the kubernetes backend: a cluster reached through its API server, and the pods that are its sandboxes.
 * Does not contain a sandbox's life (sandbox.ts), a pod's (pods.ts) or an image's (images.ts).
 *
 * K1  A pod dies by itself at `deadlineMs` whatever became of its manager, and carries the mark of its owner: the next
 *     manager with that mark removes it, and no other manager touches it while it runs.
 * K2  Nothing but exec streams leaves a pod: its network is taken down before anything of a task is in it.
 */
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";
import type { RegistryOptions } from "../../images/registry/registry-source.js";
import { NoSuchDirectory } from "../docker/archive-tree.js";
import { claim, ownerMark, release } from "../owner.js";
import { checkSpec, setupError } from "../setup-error.js";
import { TreeStore } from "../tree-store.js";
import {
  type Availability,
  type Image,
  type ImageSpec,
  type Limits,
  SANDBOX_UID,
  type Sandbox,
  type SandboxBackend,
  type SandboxSpec,
  type SweepReport,
  type Tree,
  type TreeSource,
} from "../types.js";
import { type Cluster, clusterOf, reasonOf } from "./cluster.js";
import { HELPER_IN_SANDBOX, PodHelper } from "./helper.js";
import { ClusterImages } from "./images.js";
import { ensurePolicy } from "./network-policy.js";
import { CONTAINER } from "./pod-spec.js";
import { Pods } from "./pods.js";
import { PodSandbox } from "./sandbox.js";
import type { KubernetesSettings } from "./settings.js";
import { readTree } from "./workspace.js";

/** Of a pod in which an image is only looked at. */
const READER_LIMITS: Limits = {
  cpus: 1,
  memoryBytes: 512 * 1024 ** 2,
  pids: 32,
  diskBytes: 64 * 1024 ** 2,
  outputBytes: 65_536,
};
const NAME_DIGITS = 20;

export interface KubernetesOptions {
  readonly stateDirectory: string;
  readonly settings: KubernetesSettings;
  readonly registry?: Partial<RegistryOptions>;
}

interface Started {
  readonly owner: string;
  readonly pods: Pods;
  readonly trees: TreeStore;
  readonly images: ClusterImages;
  readonly settings: KubernetesSettings & { readonly helperImage: string };
}

export class KubernetesBackend implements SandboxBackend {
  readonly name = "kubernetes" as const;
  readonly isInsecure = false;
  readonly #options: KubernetesOptions;
  readonly #sandboxes = new Map<string, PodSandbox>();
  /** What images have at a directory, by digest and path. */
  readonly #trees = new Map<string, Promise<Tree>>();
  #cluster: Cluster | undefined;
  #started: Started | undefined;

  constructor(options: KubernetesOptions) {
    this.#options = options;
  }

  async availability(): Promise<Availability> {
    const { helperImage, namespace } = this.#options.settings;
    if (process.platform !== "linux") return { ok: false, reason: "the manager itself runs on Linux only" };
    if (helperImage === undefined)
      return {
        ok: false,
        reason: "sandbox.kubernetes.helperImage is not set (deploy/kubernetes/pod-helper.Dockerfile)",
      };
    try {
      this.#cluster ??= clusterOf(this.#options.settings);
      await this.#cluster.core.listNamespacedPod({ namespace, limit: 1 });
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `namespace ${namespace}: ${reasonOf(error)}` };
    }
  }

  async start(): Promise<SweepReport> {
    const { stateDirectory, settings, registry = {} } = this.#options;
    const { helperImage } = settings;
    if (helperImage === undefined) throw setupError("sandbox.kubernetes.helperImage is not set");
    claim(stateDirectory);
    this.#cluster ??= clusterOf(settings);
    const owner = podOwner(stateDirectory);
    const pods = new Pods(this.#cluster, owner);
    if (settings.networkPolicy) await ensurePolicy(this.#cluster, settings.namePrefix);
    const containers = await pods.sweep(Date.now());
    await pods.watch.start();
    mkdirSync(path.join(stateDirectory, "trees"), { recursive: true });
    this.#started = {
      owner,
      pods,
      trees: new TreeStore(
        path.join(stateDirectory, "trees"),
        process.getuid?.() === 0 ? SANDBOX_UID : undefined,
      ),
      images: new ClusterImages(registry, settings.hostImage),
      settings: { ...settings, helperImage },
    };
    return { processes: 0, mounts: 0, cgroups: 0, containers, directories: 0 };
  }

  async prepareImage(spec: ImageSpec): Promise<Image> {
    return this.#parts.images.prepare(spec);
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    return this.#parts.trees.put(source);
  }

  /** Read once an image and directory, in a pod of its own. */
  readTree(image: Image, directory: string): Promise<Tree> {
    return this.#remembered(image, directory, () => this.#readTree(image, directory));
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    const { owner, pods, images, settings } = this.#parts;
    checkSpec(spec, this.#sandboxes.has(spec.id));
    const sandbox = await PodSandbox.create(spec, {
      cluster: this.#cluster!,
      pods,
      images,
      owner,
      settings,
      nameOf: (id) => this.#podName(id),
      below: ({ image, workdir = "/workspace" }, look) =>
        this.#remembered(image, workdir, look).catch((error: unknown) => {
          if (error instanceof NoSuchDirectory) return undefined;
          throw error;
        }),
      onDestroyed: (gone) => this.#sandboxes.delete(gone.id),
    });
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    const { pods } = this.#parts;
    this.#started = undefined;
    await pods.sweep(Date.now());
    await pods.watch.stop();
    release(this.#options.stateDirectory);
  }

  get #parts(): Started {
    if (this.#started === undefined) throw setupError("the backend was not started");
    return this.#started;
  }

  #podName(id: string): string {
    const { owner, settings } = this.#parts;
    // Deleting takes its time: the same id may come again before the name is free.
    const serial = createHash("sha256")
      .update(id)
      .update(randomBytes(16))
      .digest("hex")
      .slice(0, NAME_DIGITS);
    return `${settings.namePrefix}-${owner}-${serial}`;
  }

  #remembered(image: Image, directory: string, look: () => Promise<Tree>): Promise<Tree> {
    const key = `${image.digest} ${directory}`;
    const known = this.#trees.get(key);
    if (known !== undefined) return known;
    const looking = look();
    this.#trees.set(key, looking);
    looking.catch((error: unknown) => error instanceof NoSuchDirectory || this.#trees.delete(key));
    return looking;
  }

  async #readTree(image: Image, directory: string): Promise<Tree> {
    const { owner, pods, images, settings } = this.#parts;
    const name = this.#podName("reader");
    await pods.create({
      name,
      owner,
      id: `reader of ${image.digest}`,
      image: images.nameOf(image),
      limits: READER_LIMITS,
      mounts: [],
      scratch: [],
      settings,
    });
    try {
      const place = { pod: name, container: CONTAINER.sandbox, program: HELPER_IN_SANDBOX };
      return await readTree(new PodHelper(this.#cluster!, place), directory);
    } finally {
      await pods.remove(name);
    }
  }
}

/** Replicas of a manager have the same paths: the mark is of this host too, which a StatefulSet gives again. */
export function podOwner(stateDirectory: string): string {
  const mark = ownerMark(stateDirectory);
  return createHash("sha256").update(`${mark} ${hostname()}`).digest("hex").slice(0, mark.length);
}
