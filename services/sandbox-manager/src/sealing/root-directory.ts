/**
 * Owns an untrusted root filesystem as a directory of the host: finding what a path of it means, reading it, walking
 * it. Does not change it (see history-store.ts) and does not know what is looked for.
 *
 * R1  Links are resolved by the kernel with this directory as `/`; what comes out is a path of real directories.
 * R2  Calls on such a path never follow its last part.
 * Precondition of both: nobody else changes the tree meanwhile; no process of the sandbox runs.
 *
 * Paths are byte strings relative to the root, without a slash at either end; the root itself is "".
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  statfsSync,
} from "node:fs";
import { closePath, codeOf, openPathInRoot } from "../images/layer/linux.js";
import { bytesOf, compareBytes, joined } from "./byte-path.js";
import { sealFailed } from "./seal-errors.js";

export type EntryKind = "directory" | "file" | "symlink" | "special";

export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly kind: EntryKind;
}

/** A directory with what is in it, in order of bytes. */
export interface Listing {
  readonly path: string;
  readonly entries: readonly Entry[];
}

/** Linux refuses longer ones, so that what lies deeper cannot be looked at by path. */
const MAX_PATH_BYTES = 4000;
const MAX_TEXT_BYTES = 1024 * 1024;
/** Magic numbers of file systems that hold the kernel's view of itself: statfs(2). */
const KERNEL_FILE_SYSTEMS = new Set([
  0x9fa0, 0x62656572, 0x1cd1, 0x27e0eb, 0x63677270, 0x64626720, 0x74726163,
]);

export class RootDirectory {
  /** Absolute path on the host as a byte string, links resolved. */
  readonly path: string;
  readonly #fd: number;

  /** @throws MORTISE_SANDBOX_SEAL when there is no such directory */
  constructor(directory: string) {
    try {
      this.path = realpathSync(directory, "buffer").toString("latin1");
      this.#fd = openSync(bytesOf(this.path), constants.O_RDONLY | constants.O_DIRECTORY);
    } catch (cause) {
      throw sealFailed(`the root ${JSON.stringify(directory)} cannot be opened`, { cause });
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  /** Absolute path on the host of something found by `locate` or `walk`. */
  host(path: string): Buffer {
    return bytesOf(joined(this.path, path).replace(/\/$/, ""));
  }

  /** What a path leads to, every link followed inside (R1), or undefined when it leads nowhere. */
  locate(path: string): string | undefined {
    let fd: number;
    try {
      fd = openPathInRoot(this.#fd, path.replace(/^\/+/, ""));
    } catch (error) {
      if (["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG", "EACCES"].includes(codeOf(error) ?? ""))
        return undefined;
      throw sealFailed("a path of the root cannot be resolved; Linux 5.6 or newer is needed", {
        cause: error,
      });
    }
    try {
      const found = readlinkSync(`/proc/self/fd/${fd}`, "buffer").toString("latin1");
      if (found === this.path) return "";
      const below = this.path === "/" ? "/" : `${this.path}/`;
      if (!found.startsWith(below)) throw sealFailed("a path of the root leads out of it");
      return found.slice(below.length);
    } finally {
      closePath(fd);
    }
  }

  /** Of what has this path itself; undefined when nothing has, or a part of it is no directory. */
  stat(path: string): Stats | undefined {
    try {
      return lstatSync(this.host(path), { throwIfNoEntry: false });
    } catch (error) {
      if (codeOf(error) === "ENOTDIR") return undefined;
      throw error;
    }
  }

  isDirectory(path: string): boolean {
    return this.stat(path)?.isDirectory() === true;
  }

  /** A regular file for reading; the caller closes it. Undefined for anything else that has this name. */
  open(path: string): { readonly fd: number; readonly stat: Stats } | undefined {
    let fd: number;
    try {
      fd = openSync(this.host(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (["ENOENT", "ELOOP", "ENXIO", "ENOTDIR"].includes(codeOf(error) ?? "")) return undefined;
      throw error;
    }
    const stat = fstatSync(fd);
    if (stat.isFile()) return { fd, stat };
    closeSync(fd);
    return undefined;
  }

  /** The first bytes of a regular file as a byte string. */
  text(path: string, maxBytes = MAX_TEXT_BYTES): string | undefined {
    const file = this.open(path);
    if (file === undefined) return undefined;
    try {
      const buffer = Buffer.allocUnsafe(Math.min(maxBytes, file.stat.size));
      return buffer.toString("latin1", 0, readSync(file.fd, buffer, 0, buffer.byteLength, 0));
    } finally {
      closeSync(file.fd);
    }
  }

  list(path: string): Listing {
    const found = readdirSync(this.host(path), { withFileTypes: true, encoding: "buffer" });
    const entries = found.map((entry): Entry => {
      const name = entry.name.toString("latin1");
      return { name, path: joined(path, name), kind: kindOf(entry) };
    });
    return { path, entries: entries.sort((a, b) => compareBytes(a.name, b.name)) };
  }

  /**
   * Every directory from `start` on, in order of path. Mounts below are entered, except the kernel's own file
   * systems, which are given to `onLeftOut`. `isWanted` may keep it out of a directory.
   * @throws MORTISE_SANDBOX_SEAL at a path the kernel takes no more: what is below could not be looked at
   */
  *walk(
    start: string,
    onLeftOut: (path: string) => void = () => {},
    isWanted: (path: string) => boolean = () => true,
  ): Generator<Listing> {
    const stack = [{ path: start, device: this.stat(start)?.dev }];
    for (;;) {
      const next = stack.pop();
      if (next === undefined) return;
      const listing = this.list(next.path);
      yield listing;
      for (const entry of listing.entries.toReversed()) {
        if (entry.kind !== "directory" || !isWanted(entry.path)) continue;
        if (this.host(entry.path).byteLength > MAX_PATH_BYTES)
          throw sealFailed(
            `directories are nested deeper than can be searched, in ${next.path.slice(0, 200)}`,
          );
        const device = this.stat(entry.path)?.dev;
        // Removed by the consumer of this walk.
        if (device === undefined) continue;
        if (device !== next.device && KERNEL_FILE_SYSTEMS.has(statfsSync(this.host(entry.path)).type))
          onLeftOut(entry.path);
        else stack.push({ path: entry.path, device });
      }
    }
  }
}

function kindOf(entry: { isDirectory(): boolean; isFile(): boolean; isSymbolicLink(): boolean }): EntryKind {
  if (entry.isDirectory()) return "directory";
  if (entry.isFile()) return "file";
  return entry.isSymbolicLink() ? "symlink" : "special";
}
