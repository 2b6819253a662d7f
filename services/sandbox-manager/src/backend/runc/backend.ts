/**
 * Owns the runc backend: whether this host can run it, its directories and its live sandboxes.
 * Does not contain a sandbox's life (sandbox.ts) or a command's (container.ts).
 *
 * Below the state directory: `images/`, `bases/`, `store/` and `trees/` are caches that stay; `run/` is a memory file
 * system that holds everything else, so that a reboot or one unmount leaves nothing.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import type { RegistryOptions } from "../../images/registry/registry-source.js";
import { sayingNoSpace } from "../../no-space.js";
import type { AllowedHostRules } from "../network/index.js";
import { claim, release } from "../owner.js";
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
  WORKSPACE,
} from "../types.js";
import { CgroupHost } from "./cgroup.js";
import { RuncImages } from "./images.js";
import { type RootSource, RuncSandbox } from "./sandbox.js";
import { isArchitectureSupported } from "./seccomp.js";
import { Starts } from "./starts.js";
import { cgroupParent, runDirectory, sweep } from "./sweep.js";
import { MS_NODEV, MS_NOSUID, makePrivate, mount, unmount } from "./syscalls.js";

/** `run --keep`, which evidence of limits depends on, came with 1.1. */
const MIN_RUNC = [1, 1] as const;
/** Holds configuration, logs and pid files of live commands only. */
const RUN_DIRECTORY_BYTES = 64 * 1024 * 1024;
const STARTS_PER_CORE = 2;

export interface RuncOptions {
  readonly stateDirectory: string;
  /** Name on PATH, or path. */
  readonly runc: string;
  /** How registries are asked; without mirrors and with Docker's own logins when absent. */
  readonly registry?: Partial<RegistryOptions>;
  /** What allow-lists may name besides public hosts. */
  readonly allowedHosts?: AllowedHostRules;
}

/** What there is between `start` and `stop`. */
interface Started {
  readonly cgroups: CgroupHost;
  readonly trees: TreeStore;
  readonly images: RuncImages;
  readonly starts: Starts;
}

export class RuncBackend implements SandboxBackend {
  readonly name = "runc" as const;
  readonly isInsecure = false;
  readonly #options: RuncOptions;
  readonly #sandboxes = new Map<string, RuncSandbox>();
  #stateDirectory = "";
  #started: Started | undefined;

  constructor(options: RuncOptions) {
    this.#options = options;
  }

  async availability(): Promise<Availability> {
    if (process.platform !== "linux") return { ok: false, reason: "runc needs Linux" };
    if (process.getuid?.() !== 0) return { ok: false, reason: "runc with kernel overlay needs root" };
    if (!isArchitectureSupported(process.arch))
      return { ok: false, reason: `no system-call policy for ${process.arch}` };
    if (CgroupHost.detect() === undefined)
      return { ok: false, reason: "no usable cgroup hierarchy is mounted" };
    return runcVersion(this.#options.runc);
  }

  async start(): Promise<SweepReport> {
    // Files made for sandboxes must be readable by their user, whatever umask this process was given.
    process.umask(0o022);
    claim(this.#options.stateDirectory);
    this.#stateDirectory = realpathSync(this.#options.stateDirectory);
    const report = await sweep(this.#stateDirectory);
    const cgroups = CgroupHost.detect();
    if (cgroups === undefined) throw setupError("no usable cgroup hierarchy is mounted");
    this.#started = {
      cgroups,
      trees: new TreeStore(path.join(this.#stateDirectory, "trees"), SANDBOX_UID),
      images: new RuncImages(this.#stateDirectory, this.#options.registry ?? {}),
      starts: new Starts(STARTS_PER_CORE * availableParallelism()),
    };
    const run = runDirectory(this.#stateDirectory);
    mkdirSync(run, { recursive: true, mode: 0o700 });
    mount("mortise", run, "tmpfs", MS_NODEV | MS_NOSUID, `size=${RUN_DIRECTORY_BYTES},mode=700`);
    // Or every sandbox's mounts would also appear in other mount namespaces and stay there.
    makePrivate(run);
    return report;
  }

  prepareImage(spec: ImageSpec): Promise<Image> {
    return sayingNoSpace(this.#stateDirectory, () => this.#parts.images.prepare(spec));
  }

  prepareTree(source: TreeSource): Promise<Tree> {
    return sayingNoSpace(this.#stateDirectory, () => this.#parts.trees.put(source));
  }

  async readTree(image: Image, directory: string): Promise<Tree> {
    return this.#parts.images.readTree(image, directory);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    const { cgroups, images, starts } = this.#parts;
    const run = runDirectory(this.#stateDirectory);
    checkSpec(spec, this.#sandboxes.has(spec.id) || existsSync(path.join(run, spec.id)));
    const host = {
      runc: this.#options.runc,
      runDirectory: run,
      cgroupParent: cgroupParent(this.#stateDirectory),
      cgroups,
      images,
      starts,
      allowedHosts: this.#options.allowedHosts ?? {},
      onDestroyed: (id: string) => this.#sandboxes.delete(id),
    };
    const sandbox = await RuncSandbox.create(spec, host, this.#sourceOf(spec));
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    await this.#started?.images.close();
    this.#started = undefined;
    await sweep(this.#stateDirectory);
    unmount(runDirectory(this.#stateDirectory));
    release(this.#stateDirectory);
  }

  get #parts(): Started {
    if (this.#started === undefined) throw setupError("the backend was not started");
    return this.#started;
  }

  /** The tree that `diff` is taken against lies somewhere in the stack; what is above it was changed already. */
  #sourceOf(spec: SandboxSpec): RootSource {
    const { images, trees } = this.#parts;
    const { workspace, workdir = WORKSPACE, limits, scratch = [] } = spec;
    const stack = images.stackOf(spec.image);
    const parts = { layers: stack.layers, workdir, root: stack.root, diskBytes: limits.diskBytes, scratch };
    if (workspace.directory === undefined) {
      const base = images.layersOfTree(workspace);
      const nChanged = base === undefined ? -1 : stack.layers.length - base.length;
      if (nChanged < 0 || stack.layers[nChanged] !== base?.[0])
        throw setupError("workspace: it was read from an image that this one was not made from.");
      return { stack, parts, changed: stack.layers.slice(0, nChanged) };
    }
    const workspaceLayer = trees.layerAt({ ...workspace, directory: workspace.directory }, workdir);
    const at = stack.layers.indexOf(workspaceLayer);
    if (at >= 0) return { stack, parts, changed: stack.layers.slice(0, at) };
    return { stack, parts: { ...parts, workspaceLayer }, changed: [] };
  }
}

async function runcVersion(runc: string): Promise<Availability> {
  try {
    const { stdout } = await promisify(execFile)(runc, ["--version"]);
    const [, major, minor] = /runc version (\d+)\.(\d+)/.exec(stdout) ?? [];
    if (Number(major) > MIN_RUNC[0] || (Number(major) === MIN_RUNC[0] && Number(minor) >= MIN_RUNC[1]))
      return { ok: true };
    return {
      ok: false,
      reason: `${runc} is ${stdout.split("\n")[0]}, ${MIN_RUNC.join(".")} or newer is needed`,
    };
  } catch (error) {
    return { ok: false, reason: `${runc} cannot be run: ${(error as Error).message}` };
  }
}
