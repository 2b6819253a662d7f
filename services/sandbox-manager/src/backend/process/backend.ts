/**
 * Owns the process backend, for development on machines that can do nothing better: commands run as plain
 * child processes on a copy of the workspace.
 *
 * INSECURE: a command sees the whole host, its network and its files, and can outlive its process group.
 * Every result says so, and so does the log, every time. Only time and output limits are enforced.
 */
import { cpSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { applyToDirectory } from "../../patch/apply.js";
import { claim, release } from "../owner.js";
import { ModelRelay } from "../relay.js";
import { TreeStore } from "../tree-store.js";
import type {
  Availability,
  Image,
  ImageSpec,
  Sandbox,
  SandboxBackend,
  SandboxSpec,
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

export class ProcessBackend implements SandboxBackend {
  readonly name = "process" as const;
  readonly isInsecure = true;
  readonly #options: ProcessOptions;
  readonly #sandboxes = new Map<string, ProcessSandbox>();
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

  /** The host itself is the image. */
  async prepareImage(_spec: ImageSpec): Promise<Image> {
    return { digest: "", location: "" };
  }

  async prepareTree(source: TreeSource): Promise<Tree> {
    return this.#trees!.put(source);
  }

  async create(spec: SandboxSpec): Promise<Sandbox> {
    this.#options.warn(`INSECURE sandbox ${spec.id}: no isolation`);
    if (this.#sandboxes.has(spec.id))
      throw new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: `sandbox ${spec.id} exists already` });
    const directory = path.join(this.#run, spec.id);
    const workspace = path.join(directory, "workspace");
    mkdirSync(path.join(directory, "tmp"), { recursive: true });
    cpSync(spec.workspace.directory, workspace, { recursive: true, verbatimSymlinks: true });
    if (spec.patch !== undefined) applyToDirectory(spec.patch, workspace);
    const opened = spec.network.kind === "model" ? await ModelRelay.open(spec.network) : undefined;
    const sandbox = new ProcessSandbox(spec, directory, opened, () => this.#sandboxes.delete(spec.id));
    this.#sandboxes.set(spec.id, sandbox);
    return sandbox;
  }

  async stop(): Promise<void> {
    await Promise.allSettled([...this.#sandboxes.values()].map((sandbox) => sandbox.destroy()));
    rmSync(this.#run, { recursive: true, force: true });
    release(this.#options.stateDirectory);
  }

  get #run(): string {
    return path.join(this.#options.stateDirectory, "run");
  }
}
