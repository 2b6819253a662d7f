/**
 * Owns the directory a layer is unpacked into, as open descriptors: finding and making the directory of a name,
 * clearing a taken name, copying up what a lower layer has. Every path is resolved by the kernel with the layer's
 * root as its root, and every entry is made by its own name in an open directory, so nothing outside can be named.
 * Does not read archives and does not decide what an entry becomes.
 *
 * Precondition: nobody else writes below the directory while this lives.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  fchmodSync,
  fchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Stats,
} from "node:fs";
import type { Timestamp } from "../archive/pax.js";
import { layerRefused } from "../image-errors.js";
import * as linux from "./linux.js";
import { isWhiteout, type LowerEntry, lookUp, OPAQUE_XATTR } from "./lower.js";

/** Archives list a directory's entries together: a few open directories spare nearly all resolving. */
const OPEN_DIRECTORIES = 64;
const IMPLIED_MODE = 0o755;

export class LayerTree {
  readonly root: number;
  readonly #lower: () => Promise<readonly string[]>;
  readonly #open = new Map<string, number>();
  /** Still open for the present entry, but no longer known by a path. */
  #retired: number | undefined;
  readonly #times = new Map<string, Timestamp>();
  /** Whether the tree holds anything taken from lower layers, or would over others. */
  needsLower = false;

  constructor(directory: string, lower: () => Promise<readonly string[]>) {
    this.root = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    this.#lower = lower;
  }

  /** The open directory of these parts, made when it is missing. It stays open for the next few calls only. */
  async directory(parts: readonly string[]): Promise<number> {
    const path = parts.join("/");
    if (path === "") return this.root;
    const known = this.#open.get(path);
    if (known !== undefined) {
      this.#open.delete(path);
      this.#open.set(path, known);
      return known;
    }
    return this.#keep(path, this.#find(path) ?? (await this.#imply(parts)));
  }

  /** The entry of this name, not what a link leads to. */
  stat(parent: number, name: string): Stats | undefined {
    return lstatSync(linux.pathIn(parent, name), { throwIfNoEntry: false });
  }

  /** Where a link's source is in this layer, or undefined when this layer does not have it. */
  source(parts: readonly string[]): { parent: number; name: string; stat: Stats } | undefined {
    const parentPath = parts.slice(0, -1).join("/");
    const name = parts.at(-1)!;
    const parent = parentPath === "" ? this.root : (this.#open.get(parentPath) ?? this.#reopen(parentPath));
    if (parent === undefined) return undefined;
    const stat = this.stat(parent, name);
    return stat === undefined ? undefined : { parent, name, stat };
  }

  /** Copies an entry of a lower layer to the same place here, as an overlay does before it links it. */
  async copyUp(parts: readonly string[]): Promise<void> {
    this.needsLower = true;
    const found = lookUp(await this.#lower(), parts);
    const shown = parts.join("/");
    if (found === undefined) throw layerRefused("it is linked to, and no layer has it", shown);
    const parent = await this.directory(parts.slice(0, -1));
    const name = parts.at(-1)!;
    if (found.stat.isFile()) copyFile(found, parent, name);
    else if (found.stat.isSymbolicLink())
      linux.makeSymlink(parent, name, readlinkSync(bytes(found.path), "buffer").toString("latin1"));
    else if (found.stat.isFIFO()) linux.makeFifo(parent, name);
    else throw layerRefused("it is linked to, and is neither a file, a link nor a pipe", shown);
    this.copyAttributes(found, parent, name);
    linux.setTimes(parent, name, modified(found.stat));
  }

  /** Removes whatever has this name. Of the directories given out before, only `parent` stays open. */
  clear(parent: number, name: string): void {
    const stat = this.stat(parent, name);
    // Other paths may have led through a directory or a link, none through a file.
    if (stat?.isDirectory() || stat?.isSymbolicLink()) this.#forgetOpen(parent);
    if (stat !== undefined) removeTree(parent, name);
  }

  makeOpaque(parent: number, name: string): void {
    if (!linux.setXattr(parent, name, OPAQUE_XATTR, Buffer.from("y")))
      throw Object.assign(new Error("the file system keeps no trusted attributes"), { code: "EROFS" });
  }

  /**
   * Hides everything lower layers have. An overlay merges the roots of its layers whatever they are marked as, so every
   * name below is marked by itself.
   */
  async hideLower(): Promise<void> {
    this.needsLower = true;
    const below = (await this.#lower()).flatMap((layer) => readdirSync(layer, { encoding: "buffer" }));
    for (const name of new Set(below.map((one) => one.toString("latin1")))) {
      if (linux.makeWhiteout(this.root, name)) continue;
      if (this.stat(this.root, name)?.isDirectory()) this.makeOpaque(this.root, name);
    }
  }

  /** Remembers a directory's time: it is set at the end, because every new entry changes it. */
  setDirectoryTime(parts: readonly string[], time: Timestamp): void {
    this.#times.set(parts.join("/"), time);
  }

  /** Sets the times of directories. Nothing can be made afterwards without changing them. */
  finish(): void {
    for (const [path, time] of this.#times) {
      const fd = path === "" ? this.root : this.#find(path);
      if (fd === undefined) continue;
      linux.setTimesOf(fd, time);
      if (fd !== this.root) closeSync(fd);
    }
  }

  close(): void {
    this.#forgetOpen();
    closeSync(this.root);
  }

  copyAttributes({ path, stat }: LowerEntry, parent: number, name: string): void {
    linux.changeOwner(parent, name, stat.uid, stat.gid);
    if (!stat.isSymbolicLink()) linux.changeMode(parent, name, stat.mode & 0o7777);
    for (const [key, value] of linux.readXattrs(path))
      if (key !== OPAQUE_XATTR) linux.setXattr(parent, name, key, value);
  }

  #reopen(path: string): number | undefined {
    const fd = this.#find(path);
    return fd === undefined ? undefined : this.#keep(path, fd);
  }

  #keep(path: string, fd: number): number {
    this.#open.set(path, fd);
    if (this.#open.size > OPEN_DIRECTORIES) {
      const [oldest, oldFd] = this.#open.entries().next().value!;
      closeSync(oldFd);
      this.#open.delete(oldest);
    }
    return fd;
  }

  #find(path: string): number | undefined {
    try {
      return linux.openDirectoryInRoot(this.root, path);
    } catch (error) {
      const code = linux.codeOf(error);
      if (code === "ENOENT" || code === "ENOTDIR") return undefined;
      throw error;
    }
  }

  /**
   * Makes a directory the archive has no entry for. Over lower layers that have it, it must look as theirs does:
   * in an overlay the topmost directory of a path is the one whose owner and mode are seen.
   */
  async #imply(parts: readonly string[]): Promise<number> {
    const parent = await this.directory(parts.slice(0, -1));
    const name = parts.at(-1)!;
    const present = this.stat(parent, name);
    if (present !== undefined && !isWhiteout(present))
      throw layerRefused(
        "it is used as a directory, and is none or a link that leads nowhere",
        parts.join("/"),
      );
    if (present !== undefined) linux.removeName(parent, name, false);
    linux.makeDirectory(parent, name);
    const fd = linux.openDirectory(parent, name);
    fchmodSync(fd, IMPLIED_MODE);
    if (present !== undefined) {
      this.makeOpaque(parent, name);
      return fd;
    }
    this.needsLower = true;
    const found = lookUp(await this.#lower(), parts);
    if (found?.stat.isDirectory()) {
      this.copyAttributes(found, parent, name);
      this.setDirectoryTime(parts, modified(found.stat));
    }
    return fd;
  }

  #forgetOpen(except?: number): void {
    const retired = this.#retired;
    for (const fd of this.#open.values()) if (fd !== except) closeSync(fd);
    this.#open.clear();
    if (retired !== undefined && retired !== except) closeSync(retired);
    this.#retired = except === this.root ? undefined : except;
  }
}

function copyFile(found: LowerEntry, parent: number, name: string): void {
  const fd = linux.createFile(parent, name);
  if (fd === undefined) throw layerRefused("it is linked to, and was deleted by this layer", name);
  try {
    copyFileSync(bytes(found.path), `/proc/self/fd/${fd}`, constants.COPYFILE_FICLONE);
    fchownSync(fd, 0, 0);
  } finally {
    closeSync(fd);
  }
}

function removeTree(parent: number, name: string): void {
  if (!lstatSync(linux.pathIn(parent, name)).isDirectory()) {
    linux.removeName(parent, name, false);
    return;
  }
  const fd = linux.openDirectory(parent, name);
  try {
    for (const child of readdirSync(`/proc/self/fd/${fd}`, { encoding: "buffer" }))
      removeTree(fd, child.toString("latin1"));
  } finally {
    closeSync(fd);
  }
  linux.removeName(parent, name, true);
}

function bytes(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

function modified(stat: Stats): Timestamp {
  const seconds = Math.floor(stat.mtimeMs / 1000);
  return { seconds, nanoseconds: Math.round((stat.mtimeMs - seconds * 1000) * 1e6) };
}
