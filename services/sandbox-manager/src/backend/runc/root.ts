/**
 * Owns the root file system of one sandbox: a memory file system of its own for what it writes, over the layers of
 * its image and workspace, and the scratch volumes beside it. Does not know commands or networks.
 *
 * On disk, below the sandbox's directory: `scratch` is the memory file system with the overlay's upper and work
 * directories, `scratch/root` the mounted overlay, `volume-<n>` scratch volumes.
 */
import { chmodSync, chownSync, lstatSync, mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { RootAttributes } from "../../images/layer/entry-writer.js";
import { applyToDirectory } from "../../patch/apply.js";
import type { Patch } from "../../patch/patch.js";
import { resolveDirectory } from "../files.js";
import type { ScratchVolume } from "../types.js";
import { lookUp } from "./layers.js";
import { mountOverlay } from "./overlay.js";
import { MS_NODEV, MS_NOSUID, mount, unmountInBackground } from "./syscalls.js";

/** Metadata of the overlay itself also counts against the file system's size. */
const RESERVE_BYTES = 1024 * 1024;
const BYTES_PER_INODE = 4096;
const MIN_INODES = 4096;
const UPPER = "upper";

export interface RootParts {
  /** Topmost first, without what is laid over them. */
  readonly layers: readonly string[];
  /** A layer that shows the workspace and nothing else, unless the layers have it. */
  readonly workspaceLayer?: string;
  readonly workdir: string;
  readonly root: RootAttributes;
  readonly diskBytes: number;
  readonly scratch: readonly ScratchVolume[];
}

export class SandboxRoot {
  readonly #directory: string;
  readonly #parts: RootParts;
  #isHeldElsewhere = false;

  /** @param directory of the sandbox, on a private mount; made when missing */
  constructor(directory: string, parts: RootParts) {
    this.#directory = directory;
    this.#parts = parts;
  }

  /** The mounted root. */
  get path(): string {
    return path.join(this.#scratch, "root");
  }

  /** What the sandbox changed. */
  get upper(): string {
    return path.join(this.#scratch, UPPER);
  }

  /** All layers below the upper one, topmost first. */
  get lower(): readonly string[] {
    const { workspaceLayer, layers } = this.#parts;
    return workspaceLayer === undefined ? layers : [workspaceLayer, ...layers];
  }

  /** Host directory and path inside of each scratch volume. */
  get volumes(): readonly { readonly source: string; readonly target: string }[] {
    return this.#parts.scratch.map(({ target }, at) => ({ source: this.#volume(at), target }));
  }

  /** Throws MORTISE_SANDBOX_SETUP for an image that cannot have this workspace; `unmount` cleans up then too. */
  mount(): void {
    const { root, workdir, workspaceLayer, diskBytes, scratch } = this.#parts;
    mountMemory(this.#scratch, diskBytes + RESERVE_BYTES, 0o700);
    for (const name of [UPPER, "work", "root"]) mkdirSync(path.join(this.#scratch, name), { mode: 0o755 });
    // The root directory that is seen is the upper one.
    chownSync(this.upper, root.uid, root.gid);
    chmodSync(this.upper, root.mode & 0o7777);
    if (workspaceLayer !== undefined) this.#keepParents(workdir);
    const work = path.join(this.#scratch, "work");
    mountOverlay({ lower: this.lower, upper: this.upper, work, target: this.path });
    for (const [at, { bytes }] of scratch.entries()) mountMemory(this.#volume(at), bytes, 0o1777);
  }

  /** What is written belongs to whom the workspace belongs. */
  apply(patch: Patch): void {
    const workspace = resolveDirectory(this.path, this.#parts.workdir.slice(1));
    const { uid, gid } = lstatSync(workspace);
    applyToDirectory(patch, workspace, { uid, gid });
  }

  /** Unmounts the overlay and gives up the memory file system: `take` moves it to another place. */
  async release<T>(take: (memory: string, upper: string) => T): Promise<T> {
    await unmountInBackground(this.path);
    for (const name of ["root", "work"]) rmSync(path.join(this.#scratch, name), { recursive: true });
    const taken = take(this.#scratch, UPPER);
    this.#isHeldElsewhere = true;
    return taken;
  }

  /** Removes everything. Idempotent. */
  async unmount(): Promise<void> {
    if (!this.#isHeldElsewhere) await unmountInBackground(this.#scratch);
    for (const at of this.#parts.scratch.keys()) await unmountInBackground(this.#volume(at));
  }

  get #scratch(): string {
    return path.join(this.#directory, "scratch");
  }

  #volume(at: number): string {
    return path.join(this.#directory, `volume-${at}`);
  }

  /** The workspace's layer knows nothing of the directories on the way to it: they stay as the image has them. */
  #keepParents(workdir: string): void {
    const parts = workdir.split("/").slice(1, -1);
    let parent = "";
    for (const part of parts) {
      parent += `/${part}`;
      const place = lookUp(this.#parts.layers, parent);
      if (place.kind === "nothing") continue;
      if (place.kind !== "directory")
        throw new MortiseError({
          code: "MORTISE_SANDBOX_SETUP",
          message: `workdir ${JSON.stringify(workdir)}: the image has a link or file at ${parent}.`,
          fix: "Name the directory by the path it really has.",
        });
      const made = path.join(this.upper, parent);
      mkdirSync(made, { recursive: true });
      chownSync(made, place.stat.uid, place.stat.gid);
      chmodSync(made, place.stat.mode & 0o7777);
    }
  }
}

function mountMemory(target: string, bytes: number, mode: number): void {
  mkdirSync(target, { recursive: true, mode: 0o700 });
  const inodes = Math.max(MIN_INODES, Math.floor(bytes / BYTES_PER_INODE));
  const options = `size=${bytes},nr_inodes=${inodes},mode=${mode.toString(8)}`;
  mount("mortise", target, "tmpfs", MS_NODEV | MS_NOSUID, options);
}
