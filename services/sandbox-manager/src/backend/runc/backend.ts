/**
 * Owns the runc backend: whether this host can run it, its directories and its live sandboxes.
 * Does not contain a sandbox's life (sandbox.ts) or a command's (container.ts).
 *
 * Below the state directory: `images/` and `trees/` are caches that stay; `run/` is a memory file system that
 * holds everything else, so that a reboot or one unmount leaves nothing.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { MortiseError } from "@mortise/contracts";
import { prepareHostImage } from "../host-image.js";
import { claim, release } from "../owner.js";
import { TreeStore } from "../tree-store.js";
import type { Availability, Image, ImageSpec, Sandbox, SandboxBackend, SandboxSpec } from "../types.js";
import { SANDBOX_UID, type SweepReport, type Tree, type TreeSource } from "../types.js";
import { CgroupHost } from "./cgroup.js";
import { RuncSandbox } from "./sandbox.js";
import { isArchitectureSupported } from "./seccomp.js";
import { cgroupParent, runDirectory, sweep } from "./sweep.js";
import { MS_NODEV, MS_NOSUID, makePrivate, mount, unmount } from "./syscalls.js";

/** `run --keep`, which evidence of limits depends on, came with 1.1. */
const MIN_RUNC = [1, 1] as const;
/** Holds configuration, logs and pid files of live commands only. */
const RUN_DIRECTORY_BYTES = 64 * 1024 * 1024;
const SANDBOX_ID = /^[A-Za-z0-9_-]{1,100}$/;
/** Characters with a meaning in overlay mount options. */
const UNUSABLE_IN_OPTIONS = /[,:\\]/;

export interface RuncOptions {
  readonly stateDirectory: string;
  /** Name on PATH, or path. */
  readonly runc: string;
}

export class RuncBackend implements SandboxBackend {
  readonly name = "runc" as const;
  readonly isInsecure = false;
  readonly #options: RuncOptions;
  readonly #sandboxes = new Map<string, RuncSandbox>();
  #stateDirectory = "";
  #trees: TreeStore | undefined;
  #image: Promise<Image> | undefined;
  #cgroups: CgroupHost | undefined;

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
    if (UNUSABLE_IN_OPTIONS.test(this.#options.stateDirectory))
      return {
        ok: false,
        reason: `state directory ${this.#options.stateDirectory} contains ',', ':' or '\\'`,
      };
    return runcVersion(this.#options.runc);
  }

  async start(): Promise<SweepReport> {
    // Files made for sandboxes must be readable by their user, whatever umask this process was given.
    process.umask(0o022);
    claim(this.#options.stateDirectory);
    this.#stateDirectory = realpathSync(this.#options.stateDirectory);
    const report = await sweep(this.#stateDirectory);
    this.#cgroups = CgroupHost.detect();
    mkdirSync(this.#path("images"), { recursive: true });
    this.#trees = new TreeStore(this.#path("trees"), SANDBOX_UID);
    const run = runDirectory(this.#stateDirectory);
    mkdirSync(run, { recursive: true, mode: 0o700 });
    mount("mortise", run, "tmpfs", MS_NODEV | MS_NOSUID, `size=${RUN_DIRECTORY_BYTES},mode=700`);
    // Or every sandbox's mounts would also appear in other mount namespaces and stay there.
    makePrivate(run);
    return report;
  }

  prepareImage(_spec: ImageSpec): Promise<Image> {
    this.#image ??= Promise.resolve().then(() => prepareHostImage(this.#path("images")));
    return this.#image;
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    return this.#store().put(source);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    if (this.#cgroups === undefined) throw setupError("the backend was not started");
    if (!SANDBOX_ID.test(spec.id)) throw setupError(`sandbox id ${JSON.stringify(spec.id)} is not allowed`);
    if (this.#sandboxes.has(spec.id) || existsSync(path.join(runDirectory(this.#stateDirectory), spec.id)))
      throw setupError(`sandbox ${spec.id} exists already`);
    const sandbox = await RuncSandbox.create(spec, {
      runc: this.#options.runc,
      runDirectory: runDirectory(this.#stateDirectory),
      cgroupParent: cgroupParent(this.#stateDirectory),
      cgroups: this.#cgroups,
      onDestroyed: (id) => this.#sandboxes.delete(id),
    });
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    await sweep(this.#stateDirectory);
    unmount(runDirectory(this.#stateDirectory));
    release(this.#stateDirectory);
  }

  #path(name: string): string {
    return path.join(this.#stateDirectory, name);
  }

  #store(): TreeStore {
    if (this.#trees === undefined) throw setupError("the backend was not started");
    return this.#trees;
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

function setupError(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message });
}
