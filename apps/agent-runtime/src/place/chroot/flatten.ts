/**
 * Owns making one directory of a stack of layers: the root an image would show through an overlay, as plain files of
 * its own, for machines that may not mount. Owners, modes, times and hard links within the image are kept; devices,
 * pipes and extended attributes are not. Never blocks the process for longer than one file.
 */
import type { Stats } from "node:fs";
import {
  chmod,
  constants,
  copyFile,
  lchown,
  link,
  lutimes,
  mkdir,
  readlink,
  symlink,
} from "node:fs/promises";
import path from "node:path";
import { shownBelow } from "@mortise/sandbox-manager";

export interface Flattened {
  readonly nFiles: number;
  /** Devices, pipes and sockets. */
  readonly nLeftOut: number;
}

export interface RootOwner {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** @param layers topmost first. @param target missing; removed by the caller when this rejects */
export async function flatten(
  layers: readonly string[],
  target: string,
  root: RootOwner,
  signal: AbortSignal,
): Promise<Flattened> {
  const copies = new Copies(signal);
  await mkdir(target, { mode: 0o700 });
  await copies.fill(layers, target);
  await lchown(target, root.uid, root.gid);
  await chmod(target, root.mode & 0o7777);
  return { nFiles: copies.nFiles, nLeftOut: copies.nLeftOut };
}

class Copies {
  readonly #signal: AbortSignal;
  /** Where a file with several names was copied to. */
  readonly #linked = new Map<string, string>();
  nFiles = 0;
  nLeftOut = 0;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  async fill(directories: readonly string[], target: string): Promise<void> {
    for (const { name, place } of shownBelow(directories)) {
      this.#signal.throwIfAborted();
      const to = path.join(target, name);
      if (place.kind === "leaf") {
        await this.#leaf(place.file, place.stat, to);
        continue;
      }
      await mkdir(to, { mode: 0o700 });
      await this.fill(place.directories, to);
      await dress(to, place.stat);
    }
  }

  async #leaf(from: string, stat: Stats, to: string): Promise<void> {
    if (stat.isSymbolicLink()) {
      await symlink(await readlink(from, "buffer"), to);
      await lchown(to, stat.uid, stat.gid);
      return;
    }
    if (!stat.isFile()) {
      this.nLeftOut += 1;
      return;
    }
    const inode = `${stat.dev}:${stat.ino}`;
    const earlier = stat.nlink > 1 ? this.#linked.get(inode) : undefined;
    if (earlier !== undefined) {
      await link(earlier, to);
      return;
    }
    await copyFile(from, to, constants.COPYFILE_FICLONE);
    await dress(to, stat);
    if (stat.nlink > 1) this.#linked.set(inode, to);
    this.nFiles += 1;
  }
}

/** The owner first: changing it takes set-id bits away. */
async function dress(file: string, stat: Stats): Promise<void> {
  await lchown(file, stat.uid, stat.gid);
  await chmod(file, stat.mode & 0o7777);
  await lutimes(file, stat.atime, stat.mtime);
}
