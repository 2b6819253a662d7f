/**
 * Owns the words every sandbox backend speaks: what a sandbox is made of, what may be asked of it, and how a
 * command can end. Does not run anything; see runc/, docker/, process/ and plug-in.ts.
 *
 * B1  Nothing in the sandbox outlives `quiesce`: afterwards no process runs and the model endpoint is closed.
 * B2  `diff` is taken from outside the sandbox, only after `quiesce`, and follows no symbolic link.
 * B3  An infrastructure failure is never an exit code: it is `refused` (nothing ran) or `lost` (no result).
 * B4  Every connection of the model endpoint begins with the line of its listener key, before a byte from inside.
 */
import type { BUILT_IN_BACKENDS } from "@mortise/contracts";
import type { Patch } from "../patch/patch.js";
import type { SealReport, SealRequest } from "../sealing/types.js";
import type { Output } from "./output.js";

/** Of those that are part of Mortise; a plug-in has the name the site gives it. */
export type BackendName = (typeof BUILT_IN_BACKENDS)[number];

/** Where the task's files are inside every sandbox; the only place `diff` looks at. */
export const WORKSPACE = "/workspace";
/** The model API as seen from inside a sandbox. */
export const MODEL_PORT = 8080;
/** Owner of the workspace and of every agent process. */
export const SANDBOX_UID = 1000;

export type ImageSpec =
  /** Programs from the host, with the libraries they need: the root filesystem of a task that names no image. */
  | { readonly kind: "host" }
  | { readonly kind: "registry"; readonly reference: string }
  /** An OCI layout directory, a tar of one, or what `docker save` writes. `name` when it holds several. */
  | { readonly kind: "local"; readonly path: string; readonly name?: string }
  /** At the Docker engine already, for the docker backend only. */
  | { readonly kind: "engine"; readonly name: string };

/** What an image says of itself, where it says anything. */
export interface ImageDefaults {
  readonly environment: Readonly<Record<string, string>>;
  readonly workdir?: string;
}

/** A root filesystem a backend has ready. Where it lies is the backend's own business. */
export interface Image {
  /** Lower-case hex sha256: the manifest's of a pulled image, else over paths, modes and contents. */
  readonly digest: string;
  readonly kind: ImageSpec["kind"] | "snapshot";
  readonly defaults: ImageDefaults;
}

/**
 * A sandbox's root filesystem and workspace as they were, to start any number of sandboxes from (`SandboxSpec.image`).
 * The sandbox it was taken from runs nothing afterwards: it was the template, and is only to be destroyed.
 */
export interface Snapshot extends Image {
  readonly kind: "snapshot";
  /** Space it takes on the host beyond the image it was made from; absent where nobody knows. */
  readonly bytes?: number;
  /** Gives its space back once the last sandbox made from it is gone. Idempotent. */
  release(): Promise<void>;
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
  /** On the host; the leaves are below it. Absent when the tree is part of an image (see `readTree`). */
  readonly directory?: string;
  readonly entries: ReadonlyMap<string, TreeEntry>;
}

export interface Mount {
  /** A stored tree, or an absolute directory of the host that nobody changes while sandboxes use it (a runtime). */
  readonly source: Tree | string;
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
  | ({ readonly kind: "model" } & ModelAddress)
  /**
   * As `model`, and these hosts besides: names and IPv4 addresses as Harbor's `allowed_hosts` has them. Names are
   * resolved on the host when the network is made, and only these addresses are reachable; there is no DNS inside.
   */
  | ({ readonly kind: "allow-list"; readonly allowedHosts: readonly string[] } & ModelAddress);

export interface ModelAddress {
  readonly host: string;
  readonly port: number;
  /**
   * What whoever joins the sandbox to this address says first on every connection, before a byte from inside
   * (`listenerLine`): it makes the connection this session's and no other's. Nothing inside may learn it.
   */
  readonly listenerKey?: string;
}

/** What was looked at from inside a sandbox to show that its network is what was asked for. */
export interface NetworkProof {
  readonly isClosed: boolean;
  /** One line a probe: what was tried, what was expected, what happened. */
  readonly probes: readonly NetworkProbe[];
}

export interface NetworkProbe {
  /** For example `tcp 169.254.169.254:80`, `udp-dns 8.8.8.8`, `tcp6 [2001:4860:4860::8888]:53`, `model endpoint`. */
  readonly name: string;
  readonly expected: "reachable" | "unreachable";
  readonly observed: "reachable" | "unreachable";
}

export interface SandboxSpec {
  /** `[A-Za-z0-9_-]+`, unique among the live sandboxes of a manager. */
  readonly id: string;
  readonly image: Image;
  /**
   * The task's files: laid over `workdir`, or, without a directory of its own, what the image has there. Not laid
   * again over a snapshot that has it: `diff` then names what was changed since, before the snapshot too.
   */
  readonly workspace: Tree;
  /** Absolute path of the workspace inside; `WORKSPACE` when absent. */
  readonly workdir?: string;
  /** Applied to the workspace before anything runs. */
  readonly patch?: Patch;
  readonly mounts: readonly Mount[];
  /** Empty writable directories with a size of their own, for what must not count against `diskBytes`. */
  readonly scratch?: readonly ScratchVolume[];
  readonly limits: Limits;
  readonly network: Network;
}

export interface ScratchVolume {
  readonly target: string;
  readonly bytes: number;
}

/** `agent` owns the workspace (`SANDBOX_UID`); `root` is uid 0 inside, equally without capabilities. */
export type SandboxUser = "agent" | "root";
export const USER_IDS: Readonly<Record<SandboxUser, number>> = { agent: SANDBOX_UID, root: 0 };

export interface Command {
  /** Program and arguments; never passed through a shell. */
  readonly argv: readonly [string, ...string[]];
  /** Over what the image sets (`ImageDefaults.environment`). */
  readonly environment: Readonly<Record<string, string>>;
  /** Absolute path inside; the workspace if absent. */
  readonly cwd?: string;
  /** `agent` if absent. */
  readonly user?: SandboxUser;
  readonly timeoutMs: number;
  /** Kept of each stream, if less than the sandbox's limit. */
  readonly outputBytes?: number;
  readonly stdin?: Uint8Array;
  /** Aborting ends the command as `cancelled`. */
  readonly signal?: AbortSignal;
  readonly onStdout?: (chunk: Uint8Array) => void;
  readonly onStderr?: (chunk: Uint8Array) => void;
}

/** The `argv` of a command written for the image's `/bin/sh`. */
export function shell(script: string): readonly [string, ...string[]] {
  return ["/bin/sh", "-c", script];
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
  /** Time in which it wanted to run and was held back by its cpu limit. */
  readonly throttledMs?: number;
  /** Time its processes waited for block devices. */
  readonly diskWaitMs?: number;
  readonly memoryPeakBytes?: number;
  readonly oomKills?: number;
  /** How often a fork was refused by the pids limit. */
  readonly pidsRefusals?: number;
  /** Attempts to reach what the network of the sandbox closes. Of a whole sandbox, never of one command. */
  readonly nDenied?: number;
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
  /** Unpacks an uncompressed tar below an absolute directory inside, for `agent` if no owner is named. Not while a command runs. */
  putTar(directory: string, tar: Uint8Array, owner?: SandboxUser): Promise<void>;
  /** Packs files below an absolute directory inside. Not while a command runs. */
  getTar(directory: string): Promise<Uint8Array>;
  /** Kills every process and closes the model endpoint (B1). Idempotent. */
  quiesce(): Promise<void>;
  /** What changed in the workspace (B2). */
  diff(limits: DiffLimits): Promise<Patch>;
  stats(): Promise<Usage>;
  /** Replaces what can be reached from now on, for running commands too. Before it resolves, nothing new is reachable. */
  setNetwork(network: Network): Promise<void>;
  /** Tries, from inside, what must and what must not be reachable. */
  proveNetwork(): Promise<NetworkProof>;
  /**
   * The whole root filesystem as a directory of the host, for hiding and searching before an agent runs. Links in it
   * lead where its author wanted: resolve every path below it. Undefined where the backend has no such directory.
   */
  readonly hostRoot: string | undefined;
  /**
   * As `sealRoot` on `hostRoot`, where the root filesystem is a directory of another host: it is sealed there, and what
   * is taken out of it is gone. Absent where `hostRoot` is enough, or nothing can be sealed.
   */
  readonly seal?: ((order: Pick<SealRequest, "workdir" | "answers">) => Promise<SealReport>) | undefined;
  /** Keeps the root filesystem and ends this sandbox's use of it; after `quiesce` too. Not while a command runs. */
  snapshot(): Promise<Snapshot>;
  /** Whether the last attempt to reach the proxy behind the model endpoint failed. */
  readonly isModelUnreachable: boolean;
  /** Time in which at least one model request was open, milliseconds; absent where that cannot be told. */
  readonly modelTimeMs?: number;
  /** Removes every trace on the host. Idempotent; ends a running command as `lost`. */
  destroy(): Promise<void>;
}

export interface DiffLimits {
  readonly maxFileBytes: number;
  readonly maxTotalBytes: number;
}

export type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string };

export interface SandboxBackend {
  /** A `BackendName`, or the name of a plug-in: state and records are kept under it. */
  readonly name: string;
  readonly isInsecure: boolean;
  /** Whether this host can run it, with the reason if not. */
  availability(): Promise<Availability>;
  /** Claims the state directory and removes what an earlier owner left. Must precede everything else. */
  start(): Promise<SweepReport>;
  prepareImage(spec: ImageSpec): Promise<Image>;
  prepareTree(source: TreeSource): Promise<Tree>;
  /**
   * The files an image has below an absolute path that leads through no link, as the base for `diff`; nothing is
   * copied. Files in `.git` directories are left out: they are never part of a change.
   */
  readTree(image: Image, directory: string): Promise<Tree>;
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
