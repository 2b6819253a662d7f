/**
 * Owns the words every sandbox backend speaks: what a sandbox is made of, what may be asked of it, and how a
 * command can end. Does not run anything; see runc/, docker/ and process/.
 *
 * B1  Nothing in the sandbox outlives `quiesce`: afterwards no process runs and the model endpoint is closed.
 * B2  `diff` is taken from outside the sandbox, only after `quiesce`, and follows no symbolic link.
 * B3  An infrastructure failure is never an exit code: it is `refused` (nothing ran) or `lost` (no result).
 */
import type { Patch } from "../patch/patch.js";
import type { Output } from "./output.js";

export type BackendName = "runc" | "docker" | "process";

/** Where the task's files are inside every sandbox; the only place `diff` looks at. */
export const WORKSPACE = "/workspace";
/** The model API as seen from inside a sandbox. */
export const MODEL_PORT = 8080;
/** Owner of the workspace and of every agent process. */
export const SANDBOX_UID = 1000;

/** Programs from the host, with the libraries they need: the root filesystem of a task that names no image. */
export interface HostImageSpec {
  readonly kind: "host";
}
/** Only the host image exists so far; an image reference is refused by `prepareImage`. */
export type ImageSpec = HostImageSpec;

export interface Image {
  /** Lower-case hex sha256 over paths, modes and contents. */
  readonly digest: string;
  /** Directory (runc), image reference (docker) or empty (process). */
  readonly location: string;
}

/** A leaf of a file tree: directories exist only as parents of leaves. */
export interface TreeEntry {
  /** Relative, `/`-separated, without `.` or `..`. */
  readonly path: string;
  readonly kind: "file" | "symlink";
  /** Only the executable bit is kept: 0o755 or 0o644; a symbolic link is 0o777. */
  readonly mode: number;
  /** Of the content, or of the link's target. */
  readonly sha256: string;
}

/** Immutable files, stored once by content and shared by all sandboxes that use them. */
export interface Tree {
  readonly digest: string;
  /** On the host; the leaves are below it. */
  readonly directory: string;
  readonly entries: ReadonlyMap<string, TreeEntry>;
}

export interface Mount {
  readonly tree: Tree;
  /** Absolute path inside the sandbox; always read-only. */
  readonly target: string;
}

/** What one sandbox may use. Everything is enforced by runc and docker; `process` enforces time and output only. */
export interface Limits {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly pids: number;
  /** Everything the sandbox writes. Kept in memory by the runc backend, so it also counts as memory. */
  readonly diskBytes: number;
  /** Per stream and command: the first and the last half are kept. */
  readonly outputBytes: number;
}

export type Network =
  | { readonly kind: "none" }
  /** 127.0.0.1:8080 inside leads to this address and nothing else is reachable. */
  | { readonly kind: "model"; readonly host: string; readonly port: number };

export interface SandboxSpec {
  /** `[A-Za-z0-9_-]+`, unique among the live sandboxes of a manager. */
  readonly id: string;
  readonly image: Image;
  readonly workspace: Tree;
  /** Applied to the workspace before anything runs. */
  readonly patch?: Patch;
  readonly mounts: readonly Mount[];
  readonly limits: Limits;
  readonly network: Network;
}

export interface Command {
  /** Program and arguments; never passed through a shell. */
  readonly argv: readonly [string, ...string[]];
  readonly environment: Readonly<Record<string, string>>;
  /** Absolute path inside; the workspace if absent. */
  readonly cwd?: string;
  readonly timeoutMs: number;
  readonly stdin?: Uint8Array;
  /** Aborting ends the command as `cancelled`. */
  readonly signal?: AbortSignal;
  readonly onStdout?: (chunk: Uint8Array) => void;
}

/** How a command ended. A status above 128 is reported as the signal it stands for, as shells write it. */
export type Outcome =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "signalled"; readonly signal: string }
  | { readonly kind: "timeout" }
  | { readonly kind: "cancelled" }
  /** `kills` comes from the kernel's counter for this sandbox, not from a guess at exit 137. */
  | { readonly kind: "out-of-memory"; readonly kills: number }
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "lost"; readonly reason: string };

/** A number that could not be measured is absent (C10). */
export interface Usage {
  readonly cpuMs?: number;
  readonly memoryPeakBytes?: number;
  readonly oomKills?: number;
  /** How often a fork was refused by the pids limit. */
  readonly pidsRefusals?: number;
}

export interface ExecResult {
  readonly outcome: Outcome;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly usage: Usage;
  readonly wallMs: number;
  /** True when the backend isolates nothing. */
  readonly isInsecure: boolean;
}

export interface Sandbox {
  readonly id: string;
  /** Runs one command to its end. Never rejects for what the command does; rejects when called after `quiesce`. */
  exec(command: Command): Promise<ExecResult>;
  /** Unpacks an uncompressed tar below an absolute directory inside. Not while a command runs. */
  putTar(directory: string, tar: Uint8Array): Promise<void>;
  /** Packs files below an absolute directory inside. Not while a command runs. */
  getTar(directory: string): Promise<Uint8Array>;
  /** Kills every process and closes the model endpoint (B1). Idempotent. */
  quiesce(): Promise<void>;
  /** What changed in the workspace (B2). */
  diff(limits: DiffLimits): Promise<Patch>;
  stats(): Promise<Usage>;
  /** Whether the last attempt to reach the proxy behind the model endpoint failed. */
  readonly isModelUnreachable: boolean;
  /** Removes every trace on the host. Idempotent; ends a running command as `lost`. */
  destroy(): Promise<void>;
}

export interface DiffLimits {
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
}

export type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export interface SandboxBackend {
  readonly name: BackendName;
  readonly isInsecure: boolean;
  /** Whether this host can run it, with the reason if not. */
  availability(): Promise<Availability>;
  /** Claims the state directory and removes what an earlier owner left. Must precede everything else. */
  start(): Promise<SweepReport>;
  prepareImage(spec: ImageSpec): Promise<Image>;
  prepareTree(source: TreeSource): Promise<Tree>;
  create(spec: SandboxSpec): Promise<Sandbox>;
  /** Destroys what still lives and gives the state directory back. */
  stop(): Promise<void>;
}

export type TreeSource =
  | { readonly kind: "directory"; readonly directory: string }
  | { readonly kind: "files"; readonly files: readonly TreeFile[] };

export interface TreeFile {
  readonly path: string;
  readonly isExecutable: boolean;
  readonly content: Uint8Array;
}

/** What a sweep found of an earlier owner and removed. */
export interface SweepReport {
  readonly processes: number;
  readonly mounts: number;
  readonly cgroups: number;
  readonly containers: number;
  readonly directories: number;
}
