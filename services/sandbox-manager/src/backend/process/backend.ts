/**
 * Owns the process backend, for development on machines that can do nothing better: commands run as plain
 * child processes on a copy of the workspace.
 *
 * INSECURE: a command sees the whole host, its network and its files, and can outlive its process group.
 * Every result says so, and so does the log, every time. Only time and output limits are enforced.
 *
 * The host is the only image. A snapshot is a copy of a workspace; images of other kinds are refused.
 */
import { randomUUID } from "node:crypto";
import { cpSync, mkdirSync, renameSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { applyToDirectory } from "../../patch/apply.js";
import { sha256 } from "../../patch/patch.js";
import { sourceDirectory } from "../mount-source.js";
import { claim, release } from "../owner.js";
import { checkSpec, setupError } from "../setup-error.js";
import { TreeStore } from "../tree-store.js";
import type {
  Availability,
  Image,
  ImageSpec,
  Sandbox,
  SandboxBackend,
  SandboxSpec,
  Snapshot,
  SweepReport,
  Tree,
  TreeSource,
} from "../types.js";
import { ProcessSandbox } from "./sandbox.js";

export interface ProcessOptions {
  readonly stateDirectory: string;
  /** Called with a warning at start and with every sandbox. */
  readonly warn: (message: string) => void;
}

const HOST: Image = { digest: sha256("the host itself"), kind: "host", defaults: { environment: {} } };

export class ProcessBackend implements SandboxBackend {
  readonly name = "process" as const;
  readonly isInsecure = true;
  readonly #options: ProcessOptions;
  readonly #sandboxes = new Map<string, ProcessSandbox>();
  /** Directories of snapshots by digest: a workspace and /tmp as they were. */
  readonly #snapshots = new Map<string, string>();
  #trees: TreeStore | undefined;

  constructor(options: ProcessOptions) {
    this.#options = options;
  }

  async availability(): Promise<Availability> {
    return process.platform === "win32"
      ? { ok: false, reason: "process groups need a POSIX system" }
      : { ok: true };
  }

  async start(): Promise<SweepReport> {
    this.#options.warn("INSECURE process backend: commands run unconfined on this host (development only)");
    claim(this.#options.stateDirectory);
    const processes = ProcessSandbox.killLeftovers(this.#run);
    const directories = ProcessSandbox.countLeftovers(this.#run);
    rmSync(this.#run, { recursive: true, force: true });
    mkdirSync(this.#run, { recursive: true });
    this.#trees = new TreeStore(path.join(this.#options.stateDirectory, "trees"), undefined);
    return { processes, mounts: 0, cgroups: 0, containers: 0, directories };
  }

  /** The host itself is the image; anything else is refused with MORTISE_SANDBOX_BACKEND. */
  async prepareImage(spec: ImageSpec): Promise<Image> {
    if (spec.kind === "host") return HOST;
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `the process backend has no images: ${nameOf(spec)} needs another backend.`,
      fix: "Set sandbox.backend to runc or docker.",
    });
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    if (this.#trees === undefined) throw setupError("the backend was not started");
    return this.#trees.put(source);
  }

  /** Rejects: without a root file system there is nothing of an image to read. */
  async readTree(_image: Image, directory: string): Promise<Tree> {
    throw new MortiseError({
      code: "MORTISE_SANDBOX_BACKEND",
      message: `the process backend has no images: ${directory} cannot be read from one.`,
      fix: "Set sandbox.backend to runc or docker.",
    });
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    this.#options.warn(`INSECURE sandbox ${spec.id}: no isolation`);
    checkSpec(spec, this.#sandboxes.has(spec.id));
    const mounts = spec.mounts.map((mount) => ({ inside: mount.target, outside: sourceDirectory(mount) }));
    const directory = path.join(this.#run, spec.id);
    try {
      this.#fill(spec, directory);
      const sandbox = await ProcessSandbox.create({
        spec,
        directory,
        mounts,
        keep: (from) => this.#keep(from),
        onDestroyed: () => this.#sandboxes.delete(spec.id),
      });
      this.#sandboxes.set(spec.id, sandbox);
      return sandbox;
    } catch (error) {
      rmSync(directory, { recursive: true, force: true });
      throw error;
    }
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    rmSync(this.#run, { recursive: true, force: true });
    release(this.#options.stateDirectory);
  }

  #fill(spec: SandboxSpec, directory: string): void {
    const workspace = path.join(directory, "workspace");
    const template = this.#snapshots.get(spec.image.digest);
    if (spec.image.kind === "snapshot" && template === undefined)
      throw setupError(`snapshot ${spec.image.digest} was released`);
    mkdirSync(path.join(directory, "tmp"), { recursive: true });
    const source = template ?? spec.workspace.directory;
    if (source === undefined) throw setupError("workspace: it is part of an image");
    cpSync(source, template === undefined ? workspace : directory, {
      recursive: true,
      verbatimSymlinks: true,
    });
    if (spec.patch !== undefined) applyToDirectory(spec.patch, workspace);
  }

  /** Moves what a sandbox had written to where sandboxes can be made from it. */
  #keep(directory: string): Snapshot {
    const name = randomUUID();
    const digest = sha256(name);
    const kept = path.join(this.#run, `snapshot.${name}`);
    mkdirSync(kept);
    for (const part of ["workspace", "tmp"]) renameSync(path.join(directory, part), path.join(kept, part));
    this.#snapshots.set(digest, kept);
    return {
      digest,
      kind: "snapshot",
      defaults: HOST.defaults,
      // Sandboxes made from it have copies.
      release: async () => {
        this.#snapshots.delete(digest);
        rmSync(kept, { recursive: true, force: true });
      },
    };
  }

  get #run(): string {
    return path.join(this.#options.stateDirectory, "run");
  }
}

function nameOf(spec: Exclude<ImageSpec, { kind: "host" }>): string {
  if (spec.kind === "registry") return spec.reference;
  return spec.kind === "local" ? spec.path : spec.name;
}
