/**
 * Owns immutable file trees on disk, one directory per content digest: task workspaces, hidden tests,
 * harnesses, bytecode caches. What a group shares is stored and hashed once.
 * Does not evict: trees are small, and a tree in use must not disappear under a mount.
 *
 * Layout: `<root>/<digest>/workspace/…`. The inner name lets the same directory be an overlay layer that
 * provides `/workspace` and the source of a bind mount. `<root>/<digest>@<place>/…` shows the same files, as hard
 * links, at another path.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { isContainedPath, sha256 } from "../patch/patch.js";
import { type Tree, type TreeEntry, type TreeSource, WORKSPACE } from "./types.js";

/** Enough of a digest to tell the few places apart at which one tree is shown. */
const PLACE_LENGTH = 16;

/** An entry and where its bytes are. */
interface SourcedEntry extends TreeEntry {
  readonly from: { readonly file: string } | { readonly bytes: Uint8Array };
}

export class TreeStore {
  readonly #root: string;
  readonly #owner: number | undefined;
  #count = 0;

  /** @param owner uid and gid given to everything stored, or undefined where we may not change owners. */
  constructor(root: string, owner: number | undefined) {
    this.#root = root;
    this.#owner = owner;
    mkdirSync(root, { recursive: true, mode: 0o755 });
  }

  /** Stores a tree, or finds it stored. Rejects names that leave it (MORTISE_TASK_INVALID). */
  put(source: TreeSource): Tree {
    const sourced = (
      source.kind === "directory" ? entriesOfDirectory(source.directory) : entriesOfFiles(source)
    ).sort((a, b) => (a.path < b.path ? -1 : 1));
    const digest = digestOfEntries(sourced);
    const directory = path.join(this.#root, digest, "workspace");
    if (!existsSync(directory)) this.#write(sourced, digest);
    return {
      digest,
      directory,
      entries: new Map(sourced.map(({ from: _, ...entry }) => [entry.path, entry])),
    };
  }

  /** A directory that, as an overlay layer, shows a stored tree at an absolute path. Made when first asked for. */
  layerAt(tree: Tree & { readonly directory: string }, place: string): string {
    if (place === WORKSPACE) return path.dirname(tree.directory);
    const name = `${tree.digest}@${sha256(place).slice(0, PLACE_LENGTH)}`;
    if (!existsSync(path.join(this.#root, name)))
      this.#publish(name, place.slice(1), (top) => {
        for (const entry of tree.entries.values()) {
          const [from, to] = [path.join(tree.directory, entry.path), path.join(top, entry.path)];
          this.#makeParents(top, entry);
          if (entry.kind === "symlink") symlinkSync(readlinkSync(from), to);
          else linkSync(from, to);
          if (entry.kind === "symlink") this.#own(to);
        }
      });
    return path.join(this.#root, name);
  }

  #write(sourced: readonly SourcedEntry[], digest: string): void {
    this.#publish(digest, WORKSPACE.slice(1), (top) => {
      for (const entry of sourced) this.#writeEntry(top, entry);
    });
  }

  /** Gives a directory its name once everything in it is written; leaves nothing when that fails. */
  #publish(name: string, inner: string, fill: (top: string) => void): void {
    // A name no digest has: an interrupted write is never mistaken for a stored tree.
    const unfinished = path.join(this.#root, `unfinished-${process.pid}-${this.#count++}`);
    const top = path.join(unfinished, inner);
    try {
      mkdirSync(top, { recursive: true, mode: 0o755 });
      this.#own(top);
      fill(top);
      renameSync(unfinished, path.join(this.#root, name));
    } catch (error) {
      rmSync(unfinished, { recursive: true, force: true });
      if (!existsSync(path.join(this.#root, name))) throw error;
    }
  }

  #makeParents(top: string, entry: TreeEntry): void {
    const parts = entry.path.split("/").slice(0, -1);
    for (let depth = 1; depth <= parts.length; depth++) {
      const parent = path.join(top, ...parts.slice(0, depth));
      if (existsSync(parent)) continue;
      mkdirSync(parent, { mode: 0o755 });
      this.#own(parent);
    }
  }

  #writeEntry(top: string, entry: SourcedEntry): void {
    this.#makeParents(top, entry);
    const file = path.join(top, entry.path);
    if (entry.kind === "symlink") symlinkSync(bytesOf(entry).toString(), file);
    else if ("file" in entry.from) copyFileSync(entry.from.file, file);
    else writeFileSync(file, entry.from.bytes);
    if (entry.kind === "file") chmodSync(file, entry.mode);
    this.#own(file);
  }

  #own(file: string): void {
    if (this.#owner !== undefined) lchownSync(file, this.#owner, this.#owner);
  }
}

/** Digest of a tree: over path, kind, mode and content of its leaves, which must be sorted by path. */
export function digestOfEntries(entries: readonly TreeEntry[]): string {
  return sha256(entries.map((e) => `${e.path}\0${e.kind}\0${e.mode}\0${e.sha256}\n`).join(""));
}

function bytesOf(entry: SourcedEntry): Buffer {
  return "file" in entry.from ? readFileSync(entry.from.file) : Buffer.from(entry.from.bytes);
}

function entriesOfFiles(source: Extract<TreeSource, { kind: "files" }>): SourcedEntry[] {
  return source.files.map((file) => {
    if (!isContainedPath(file.path)) throw invalid(`file name ${JSON.stringify(file.path)} leaves its tree`);
    return {
      path: file.path,
      kind: "file",
      mode: file.isExecutable ? 0o755 : 0o644,
      sha256: sha256(file.content),
      from: { bytes: file.content },
    };
  });
}

function entriesOfDirectory(directory: string): SourcedEntry[] {
  if (!existsSync(directory)) throw invalid(`directory ${directory} does not exist`);
  const found: SourcedEntry[] = [];
  const walk = (relative: string): void => {
    for (const name of readdirSync(path.join(directory, relative))) {
      const leafPath = relative === "" ? name : `${relative}/${name}`;
      const file = path.join(directory, leafPath);
      const stat = lstatSync(file);
      if (stat.isDirectory()) walk(leafPath);
      else if (stat.isSymbolicLink()) {
        const target = readlinkSync(file);
        found.push({
          path: leafPath,
          kind: "symlink",
          mode: 0o777,
          sha256: sha256(target),
          from: { bytes: Buffer.from(target) },
        });
      } else if (stat.isFile()) {
        const mode = (stat.mode & 0o100) !== 0 ? 0o755 : 0o644;
        found.push({
          path: leafPath,
          kind: "file",
          mode,
          sha256: sha256(readFileSync(file)),
          from: { file },
        });
      } else throw invalid(`${file} is neither a file, a directory nor a symbolic link`);
    }
  };
  walk("");
  return found;
}

function invalid(message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_TASK_INVALID", message });
}
