/**
 * Owns moving things out of a root into a directory of the host, and the list of what was moved. Does not decide
 * what goes. Links are moved as links; pipes, sockets and devices are dropped.
 *
 * Layout: `<store>/<number in six digits>`, and `moved.json` with the paths they had.
 */
import {
  chmodSync,
  constants,
  copyFileSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { codeOf } from "../images/layer/linux.js";
import { compareBytes, isWithin, shownPath } from "./byte-path.js";
import type { RootDirectory } from "./root-directory.js";
import { sealFailed } from "./seal-errors.js";
import { MAX_MOVED_LISTED, type Taken, type TakenKind } from "./types.js";

export class HistoryStore {
  readonly directory: string;
  readonly #root: RootDirectory;
  readonly #taken: Taken[] = [];

  /** @throws MORTISE_SANDBOX_SEAL when `directory` is inside the root, around it, or not empty */
  constructor(root: RootDirectory, directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const real = realpathSync(directory, "buffer").toString("latin1");
    if (isWithin(real, root.path) || isWithin(root.path, real))
      throw sealFailed(`store ${JSON.stringify(directory)} must lie outside the root`);
    if (readdirSync(directory).length > 0)
      throw sealFailed(`store ${JSON.stringify(directory)} is not empty`);
    chmodSync(directory, 0o700);
    this.directory = directory;
    this.#root = root;
  }

  /** Moves what has this path, itself and not what a link leads to. Nothing happens when nothing is there any more. */
  take(at: string, kind: TakenKind): void {
    if (this.#root.stat(at) === undefined) return;
    const target = path.join(this.directory, String(this.#taken.length).padStart(6, "0"));
    move(this.#root.host(at), Buffer.from(target));
    this.#taken.push({ path: shownPath(at), kind });
  }

  /** Writes the list, and gives its length and its beginning in order of path. */
  finish(): { readonly nMoved: number; readonly moved: readonly Taken[] } {
    writeFileSync(path.join(this.directory, "moved.json"), JSON.stringify(this.#taken), { mode: 0o600 });
    const sorted = this.#taken.toSorted((a, b) => compareBytes(a.path, b.path));
    return { nMoved: sorted.length, moved: sorted.slice(0, MAX_MOVED_LISTED) };
  }
}

/** A rename where both ends are on one file system, else a copy. */
function move(from: Buffer, to: Buffer): void {
  try {
    renameSync(from, to);
  } catch (error) {
    // An overlay refuses to rename directories of its lower layers in the same way.
    if (codeOf(error) !== "EXDEV") throw error;
    copyTree(from, to);
    removeTree(from);
  }
}

/** Content, modes, times and owners; of links, where they lead. */
export function copyTree(from: Buffer, to: Buffer): void {
  const stat = lstatSync(from);
  if (stat.isDirectory()) {
    mkdirSync(to, { mode: 0o700 });
    for (const name of readdirSync(from, { encoding: "buffer" }))
      copyTree(below(from, name), below(to, name));
  } else if (stat.isFile()) copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  else if (stat.isSymbolicLink()) symlinkSync(readlinkSync(from, "buffer"), to);
  else return;
  lchownSync(to, stat.uid, stat.gid);
  if (stat.isSymbolicLink()) return;
  chmodSync(to, stat.mode & 0o7777);
  utimesSync(to, stat.atime, stat.mtime);
}

export function removeTree(at: Buffer): void {
  if (!lstatSync(at).isDirectory()) {
    unlinkSync(at);
    return;
  }
  for (const name of readdirSync(at, { encoding: "buffer" })) removeTree(below(at, name));
  rmdirSync(at);
}

function below(directory: Buffer, name: Buffer): Buffer {
  return Buffer.concat([directory, Buffer.from("/"), name]);
}
