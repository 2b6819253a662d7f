/**
 * Owns one sandbox of the kubernetes backend: its pod, commands by its helper, its files and its network.
 * Does not know how a pod is described (pod-spec.ts) or what its states mean (pod-state.ts).
 */
import { MortiseError } from "@mortise/contracts";
import type { Patch } from "../../patch/patch.js";
import { workspaceTar } from "../docker/workspace-tar.js";
import { EMPTY_HOSTS } from "../runc/etc-files.js";
import { setupFailure } from "../setup-error.js";
import {
  type Command,
  type DiffLimits,
  type ExecResult,
  type Network,
  type NetworkProof,
  SANDBOX_UID,
  type Sandbox,
  type SandboxSpec,
  type SandboxUser,
  type Snapshot,
  type Tree,
  USER_IDS,
  type Usage,
  WORKSPACE,
} from "../types.js";
import type { Cluster } from "./cluster.js";
import { PodCommand } from "./command.js";
import { type Counters, usageOf } from "./counters.js";
import { HELPER_IN_IMAGE, HELPER_IN_SANDBOX, type HelperCall, PodHelper } from "./helper.js";
import type { ClusterImages } from "./images.js";
import { copyMounts, podMount } from "./mount-copy.js";
import { clusterPlaces, PodNetwork } from "./network.js";
import { CONTAINER, type PodFacts } from "./pod-spec.js";
import { endOf, type PodEnd } from "./pod-state.js";
import type { Pods } from "./pods.js";
import { applyInPod, diffPod, packPod, readTree } from "./workspace.js";

/** The API server may know of an end a moment later than a stream breaks. */
const END_PATIENCE_MS = 5_000;

export interface PodHost {
  readonly cluster: Cluster;
  readonly pods: Pods;
  readonly images: ClusterImages;
  readonly owner: string;
  readonly settings: PodFacts["settings"];
  readonly nameOf: (id: string) => string;
  /** What an image has at a path, once it was looked at; a missing directory is undefined. */
  readonly below: (spec: SandboxSpec, look: () => Promise<Tree>) => Promise<Tree | undefined>;
  readonly onDestroyed: (sandbox: PodSandbox) => void;
}

export class PodSandbox implements Sandbox {
  readonly id: string;
  /** Nodes show no root file system. */
  readonly hostRoot = undefined;
  readonly #spec: SandboxSpec;
  readonly #host: PodHost;
  readonly #name: string;
  readonly #helper: PodHelper;
  readonly #relay: PodHelper;
  readonly #running = new Map<PodCommand, Promise<unknown>>();
  /** Waits in the pod to end everything in it: by then there may be no room to start it. */
  #killer: HelperCall | undefined;
  #network: PodNetwork | undefined;
  #below: Tree | undefined;
  #usage: Usage = {};
  #state: "open" | "quiesced" | "destroyed" = "open";

  private constructor(spec: SandboxSpec, host: PodHost) {
    this.id = spec.id;
    this.#spec = spec;
    this.#host = host;
    this.#name = host.nameOf(spec.id);
    const { cluster } = host;
    const pod = this.#name;
    this.#helper = new PodHelper(cluster, { pod, container: CONTAINER.sandbox, program: HELPER_IN_SANDBOX });
    this.#relay = new PodHelper(cluster, { pod, container: CONTAINER.relay, program: HELPER_IN_IMAGE });
  }

  /** A running pod; nothing of it remains if any part fails. */
  static async create(spec: SandboxSpec, host: PodHost): Promise<PodSandbox> {
    const sandbox = new PodSandbox(spec, host);
    try {
      await sandbox.#start();
      return sandbox;
    } catch (cause) {
      await sandbox.destroy();
      throw setupFailure(`${spec.id} (pod ${sandbox.#name})`, cause);
    }
  }

  async exec(command: Command): Promise<ExecResult> {
    this.#assertOpen();
    const { outputBytes } = this.#spec.limits;
    const running = new PodCommand({
      helper: this.#helper,
      command,
      workdir: this.#workdir,
      environment: this.#spec.image.defaults.environment,
      outputBytes: Math.min(outputBytes, command.outputBytes ?? outputBytes),
      podEnd: () => this.#podEnd(),
    });
    const ended = running.run();
    this.#running.set(running, ended);
    return ended.finally(() => this.#running.delete(running));
  }

  async putTar(directory: string, tar: Uint8Array, owner: SandboxUser = "agent"): Promise<void> {
    this.#assertIdle();
    await this.#setUp(`putTar ${directory}`, () =>
      this.#helper.ask({ operation: "put", directory, user: USER_IDS[owner] }, { input: [tar] }),
    );
  }

  /** Of a quiesced one too: its first process still idles. */
  async getTar(directory: string): Promise<Uint8Array> {
    if (this.#state !== "quiesced") this.#assertIdle();
    return packPod(this.#helper, directory);
  }

  async quiesce(): Promise<void> {
    if (this.#state !== "open") return;
    this.#state = "quiesced";
    for (const command of this.#running.keys()) command.mark("cancelled");
    await this.#network?.close();
    await this.#measureLast();
    try {
      await this.#killEverything();
    } catch (cause) {
      // Of a pod that has ended nothing runs.
      if ((await this.#podEnd()) === undefined) throw this.#lost("it could not be quiesced", cause);
    }
    await Promise.allSettled(this.#running.values());
  }

  async diff(limits: DiffLimits): Promise<Patch> {
    if (this.#state !== "quiesced") throw new Error("diff needs a quiesced sandbox (B2)");
    const base = { directory: this.#workdir, tree: this.#spec.workspace, below: this.#below };
    try {
      return await diffPod(this.#helper, base, limits);
    } catch (cause) {
      throw this.#lost("its change could not be read", cause);
    }
  }

  get isModelUnreachable(): boolean {
    return this.#network?.isModelUnreachable ?? false;
  }

  get modelTimeMs(): number {
    return this.#network?.modelTimeMs ?? 0;
  }

  async stats(): Promise<Usage> {
    return this.#state === "open" ? this.#measure() : this.#usage;
  }

  async setNetwork(network: Network): Promise<void> {
    this.#assertOpen();
    await this.#network!.set(network);
  }

  async proveNetwork(): Promise<NetworkProof> {
    this.#assertOpen();
    return this.#setUp("prove the network", () => this.#network!.prove());
  }

  /** Refused, as `snapshot` is: a node shows no root file system, and what would be sealed could not be kept. */
  async seal(): Promise<never> {
    throw cannot("a task whose image has to be sealed cannot run in pods");
  }

  async snapshot(): Promise<Snapshot> {
    throw cannot("a pod's files cannot be kept to start others from");
  }

  async destroy(): Promise<void> {
    if (this.#state === "destroyed") return;
    this.#state = "destroyed";
    for (const command of this.#running.keys()) command.end("destroyed");
    this.#killer?.close();
    await Promise.all([this.#host.pods.remove(this.#name), this.#network?.close()]);
    await Promise.allSettled(this.#running.values());
    this.#host.onDestroyed(this);
  }

  get #workdir(): string {
    return this.#spec.workdir ?? WORKSPACE;
  }

  async #start(): Promise<void> {
    const { pods, owner, images, settings, cluster } = this.#host;
    const { id, image, limits, mounts, scratch = [], network } = this.#spec;
    const inPod = mounts.map((mount) => podMount(mount, settings));
    await pods.create({
      name: this.#name,
      owner,
      id,
      image: images.nameOf(image),
      limits,
      mounts: inPod,
      scratch,
      settings,
    });
    const node = pods.watch.get(this.#name)?.status?.hostIP;
    this.#network = new PodNetwork({
      relay: this.#relay,
      sandbox: this.#helper,
      closed: clusterPlaces(cluster.config.getCurrentCluster()!.server, node),
    });
    await this.#helper.ask({ operation: "write", path: "/etc/hosts", content: EMPTY_HOSTS });
    await this.#helper.ask({ operation: "account", user: SANDBOX_UID });
    await Promise.all([this.#layWorkspace(), copyMounts(this.#relay, mounts, { settings, inPod })]);
    this.#killer = await this.#helper.open({ operation: "kill", hasStdin: true });
    await this.#network.set(network);
  }

  /** All but the first process of the namespace, in one go: whoever might have meddled with it inside. */
  async #killEverything(): Promise<void> {
    const killer = this.#killer;
    void killer?.feed([]);
    const ended = await killer?.result.catch(() => undefined);
    if (ended?.error !== undefined) throw new Error(ended.error);
    if (ended === undefined) await this.#helper.ask({ operation: "kill" });
  }

  async #layWorkspace(): Promise<void> {
    const { workspace, patch } = this.#spec;
    const { directory } = workspace;
    if (directory !== undefined) {
      this.#below = await this.#host.below(this.#spec, () => readTree(this.#helper, this.#workdir));
      const tar = await workspaceTar({ ...workspace, directory }, this.#workdir);
      await this.#helper.ask({ operation: "put", directory: "/", keepsOwners: true }, { input: [tar] });
    }
    if (patch !== undefined) await applyInPod(this.#helper, this.#workdir, patch);
  }

  /** Of one that has ended the counters are gone with it. */
  async #measureLast(): Promise<void> {
    const { counters } = await this.#helper
      .ask({ operation: "counters" })
      .catch(() => ({ counters: undefined }));
    if (counters === undefined) return;
    this.#usage = this.#usageOf(counters);
    for (const command of this.#running.keys()) command.measured(counters);
  }

  async #measure(): Promise<Usage> {
    const { counters = {} } = await this.#helper.ask({ operation: "counters" });
    return this.#usageOf(counters);
  }

  #usageOf(counters: Counters): Usage {
    const nDenied = this.#network?.nDenied(counters);
    return { ...usageOf(counters), ...(nDenied === undefined ? {} : { nDenied }) };
  }

  async #podEnd(): Promise<PodEnd | undefined> {
    const gone: PodEnd = { reason: `pod ${this.#name} is gone`, isOutOfMemory: false };
    const judge = (pod: Parameters<typeof endOf>[0] | undefined) => (pod === undefined ? gone : endOf(pod));
    return this.#host.pods.watch.until(this.#name, judge, END_PATIENCE_MS);
  }

  async #setUp<T>(doing: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof MortiseError) throw cause;
      const message = `sandbox ${this.id}: ${doing}: ${(cause as Error).message}`;
      throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message, cause });
    }
  }

  #lost(what: string, cause: unknown): MortiseError {
    if (cause instanceof MortiseError) return cause;
    const message = `sandbox ${this.id} (pod ${this.#name}): ${what}: ${(cause as Error).message}`;
    return new MortiseError({ code: "MORTISE_SANDBOX_LOST", message, cause });
  }

  #assertOpen(): void {
    if (this.#state !== "open") throw new Error(`sandbox ${this.id} is ${this.#state}`);
  }

  #assertIdle(): void {
    this.#assertOpen();
    if (this.#running.size > 0) throw new Error(`sandbox ${this.id} runs a command`);
  }
}

function cannot(what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_BACKEND",
    message: `kubernetes: ${what}.`,
    fix: "Run such tasks on the runc or docker backend.",
  });
}
