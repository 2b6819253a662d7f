/**
 * Owns what one archive member becomes in a layer: the file, link, directory or marker of its name, with owner,
 * mode, attributes and time. Does not read archives and does not resolve paths.
 */
import { closeSync, fchmodSync, fchownSync, ftruncateSync, writeSync } from "node:fs";
import type { TarEntry, TarReader } from "../archive/tar-reader.js";
import { layerRefused } from "../image-errors.js";
import type { LayerTree } from "./layer-tree.js";
import * as linux from "./linux.js";
import { isWhiteout } from "./lower.js";
import { markOf, partsOf } from "./names.js";

/** What becomes of device nodes: sandboxes bring their own /dev, so nothing is lost by leaving them out. */
export type DevicePolicy = "skip" | "refuse" | "create";

/** Something the archive has and the layer deliberately has not. */
export interface Skipped {
  readonly name: string;
  readonly reason: "device" | "xattr";
}

/** Owner and mode of the image's root directory, where a layer states them. */
export interface RootAttributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
}

/** A hostile layer must not fill the report. */
const MAX_SKIPPED = 100;

export class EntryWriter {
  readonly #tree: LayerTree;
  readonly #archive: TarReader;
  readonly #devices: DevicePolicy;
  readonly skipped: Skipped[] = [];
  root: RootAttributes | undefined;

  constructor(tree: LayerTree, archive: TarReader, devices: DevicePolicy) {
    this.#tree = tree;
    this.#archive = archive;
    this.#devices = devices;
  }

  async write(entry: TarEntry): Promise<void> {
    const parts = partsOf(entry.name);
    const name = parts.at(-1);
    if (name === undefined) {
      this.#writeRoot(entry);
      return;
    }
    const mark = markOf(name, entry.name);
    if (mark?.kind === "metadata") return;
    const parent = await this.#tree.directory(parts.slice(0, -1));
    if (mark?.kind === "opaque" && parts.length === 1) await this.#tree.hideLower();
    else if (mark?.kind === "opaque") this.#tree.makeOpaque(parent, ".");
    else if (mark?.kind === "whiteout") this.#whiteOut(parent, mark.hidden);
    else await this.#make(entry, parts, parent, name);
  }

  #make(entry: TarEntry, parts: readonly string[], parent: number, name: string): Promise<void> | void {
    switch (entry.kind) {
      case "file":
        return this.#file(entry, parent, name);
      case "directory":
        return this.#directory(entry, parts, parent, name);
      case "hardlink":
        return this.#hardlink(entry, parts);
      case "symlink":
        if (entry.target === "" || entry.target.includes("\0") || entry.target.length > 4095)
          throw layerRefused("its target is no path", entry.name);
        this.#create(parent, name, () => linux.makeSymlink(parent, name, entry.target));
        return this.#attributes(entry, parent, name);
      case "fifo":
        this.#create(parent, name, () => linux.makeFifo(parent, name));
        return this.#attributes(entry, parent, name);
      default:
        return this.#device(entry, entry.kind, parent, name);
    }
  }

  #writeRoot(entry: TarEntry): void {
    if (entry.kind !== "directory") throw layerRefused("it would replace the root", entry.name);
    this.root = { mode: entry.mode, uid: entry.uid, gid: entry.gid };
    this.#attributes(entry, this.#tree.root, ".");
    this.#tree.setDirectoryTime([], entry.mtime);
  }

  async #file(entry: TarEntry, parent: number, name: string): Promise<void> {
    let fd = linux.createFile(parent, name);
    if (fd === undefined) {
      this.#tree.clear(parent, name);
      fd = linux.createFile(parent, name)!;
    }
    try {
      await this.#content(entry, fd);
      fchownSync(fd, entry.uid, entry.gid);
      // After the owner: changing it takes setuid and setgid away.
      fchmodSync(fd, entry.mode);
      this.#xattrs(entry, parent, name);
      linux.setTimesOf(fd, entry.mtime);
    } finally {
      closeSync(fd);
    }
  }

  async #content(entry: TarEntry, fd: number): Promise<void> {
    let end = 0;
    let chunk: Buffer = Buffer.alloc(0);
    for (const { offset, length } of entry.segments) {
      for (let done = 0; done < length; ) {
        if (chunk.byteLength === 0) chunk = (await this.#archive.content())!;
        const part = chunk.subarray(0, length - done);
        writeAll(fd, part, offset + done);
        done += part.byteLength;
        chunk = chunk.subarray(part.byteLength);
      }
      end = offset + length;
    }
    if (entry.size > end) ftruncateSync(fd, entry.size);
  }

  #directory(entry: TarEntry, parts: readonly string[], parent: number, name: string): void {
    if (!linux.makeDirectory(parent, name)) {
      const present = this.#tree.stat(parent, name)!;
      if (!present.isDirectory()) {
        this.#tree.clear(parent, name);
        linux.makeDirectory(parent, name);
        // Deleted below and made anew here: what lower layers have inside stays deleted.
        if (isWhiteout(present)) this.#tree.makeOpaque(parent, name);
      }
    }
    linux.changeOwner(parent, name, entry.uid, entry.gid);
    linux.changeMode(parent, name, entry.mode);
    this.#xattrs(entry, parent, name);
    this.#tree.setDirectoryTime(parts, entry.mtime);
  }

  async #hardlink(entry: TarEntry, parts: readonly string[]): Promise<void> {
    const sourceParts = partsOf(entry.target);
    if (sourceParts.length === 0) throw layerRefused("it links to the root", entry.name);
    if (this.#tree.source(sourceParts) === undefined) await this.#tree.copyUp(sourceParts);
    for (;;) {
      // Directories last: only the latest few asked for stay open.
      const parent = await this.#tree.directory(parts.slice(0, -1));
      const source = this.#tree.source(sourceParts);
      if (source === undefined || isWhiteout(source.stat))
        throw layerRefused("it links to what this layer deleted", entry.name);
      if (source.stat.isDirectory()) throw layerRefused("it links to a directory", entry.name);
      const name = parts.at(-1)!;
      const present = this.#tree.stat(parent, name);
      if (present?.ino === source.stat.ino) return;
      if (linux.makeLink(source.parent, source.name, parent, name)) return;
      this.#tree.clear(parent, name);
    }
  }

  #device(entry: TarEntry, kind: "character" | "block", parent: number, name: string): void {
    const { major, minor } = entry;
    if (this.#devices === "refuse") throw layerRefused("it is a device", entry.name);
    // Number 0:0 is the overlay's own mark for a deleted entry, never a device.
    if (this.#devices === "skip" || (major === 0 && minor === 0)) {
      this.#skip(entry.name, "device");
      return;
    }
    if (major < 0 || major > 0xfff || minor < 0 || minor > 0xf_ffff)
      throw layerRefused("its device number is out of range", entry.name);
    this.#create(parent, name, () => linux.makeDevice(parent, name, kind, major, minor));
    this.#attributes(entry, parent, name);
  }

  /** A name deleted by this layer hides lower entries only, whatever the order in the archive. */
  #whiteOut(parent: number, hidden: string): void {
    if (linux.makeWhiteout(parent, hidden)) return;
    if (this.#tree.stat(parent, hidden)?.isDirectory()) this.#tree.makeOpaque(parent, hidden);
  }

  #create(parent: number, name: string, make: () => boolean): void {
    if (make()) return;
    this.#tree.clear(parent, name);
    make();
  }

  #attributes(entry: TarEntry, parent: number, name: string): void {
    linux.changeOwner(parent, name, entry.uid, entry.gid);
    if (entry.kind !== "symlink") linux.changeMode(parent, name, entry.mode);
    this.#xattrs(entry, parent, name);
    linux.setTimes(parent, name, entry.mtime);
  }

  #xattrs(entry: TarEntry, parent: number, name: string): void {
    for (const [key, value] of entry.xattrs) {
      const isKept = isAllowedXattr(key) && this.#setXattr(entry, parent, name, key, value);
      if (!isKept) this.#skip(`${entry.name}: ${key}`, "xattr");
    }
  }

  #setXattr(entry: TarEntry, parent: number, name: string, key: string, value: Buffer): boolean {
    try {
      return linux.setXattr(parent, name, key, value);
    } catch (error) {
      // `user.` attributes exist on files and directories only.
      if (linux.codeOf(error) === "EPERM" && key.startsWith("user.")) return false;
      if (linux.codeOf(error) === "EINVAL")
        throw layerRefused(`its attribute ${key} is malformed`, entry.name);
      throw error;
    }
  }

  #skip(name: string, reason: Skipped["reason"]): void {
    if (this.skipped.length < MAX_SKIPPED) this.skipped.push({ name, reason });
  }
}

/**
 * `trusted.overlay.*` would let a layer speak to the overlay itself (redirects, false opaque marks); labels of
 * security modules belong to the host.
 */
function isAllowedXattr(key: string): boolean {
  return key.startsWith("user.") || key === "security.capability" || key.startsWith("system.posix_acl_");
}

function writeAll(fd: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.byteLength; )
    done += writeSync(fd, bytes, done, bytes.byteLength - done, position + done);
}
