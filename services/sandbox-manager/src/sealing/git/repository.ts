/**
 * Owns finding out what makes up a repository of an image: its git directory, the common directory of a linked
 * worktree, the objects it borrows, its head. Reads plain files by itself and trusts none: every path in them is
 * resolved inside the root. Does not run git and changes nothing.
 */
import { isWithin, joined, parentOf } from "../byte-path.js";
import type { Listing, RootDirectory } from "../root-directory.js";
import { type ObjectFormat, objectFormatOf } from "./scratch-repository.js";

/** Git itself follows alternates this far. */
const MAX_ALTERNATES_DEPTH = 5;
const MAX_REFERENCE_DEPTH = 5;
/** What git keeps in a directory of objects. */
const OF_OBJECTS = /^(?:[0-9a-f]{2}|pack|info|tmp_.*|incoming-.*|.*\.lock)$/;
const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export interface Repository {
  /** The working tree. */
  readonly top: string;
  /** Undefined when `.git` leads nowhere inside the root. */
  readonly gitDirectory: string | undefined;
  /** Every place it is made of, no one inside another; the first is `.git` itself. */
  readonly places: readonly string[];
  /** Of the commit that is checked out. */
  readonly head: string | undefined;
  readonly format: ObjectFormat;
  /** Directories of objects, borrowed ones included. */
  readonly objects: readonly string[];
}

/** The repository a directory is in: its own, or the next one above. */
export function findRepository(root: RootDirectory, directory: string): Repository | undefined {
  for (let top = directory; ; top = parentOf(top)) {
    if (root.stat(joined(top, ".git")) !== undefined) return readRepository(root, top);
    if (top === "") return undefined;
  }
}

/** What `git` calls a git directory, bare or not, or the private part of a linked worktree. */
export function isGitDirectory({ entries }: Listing): boolean {
  const names = new Set(entries.map(({ name }) => name));
  if (!names.has("HEAD")) return false;
  const holdsObjects = names.has("objects") && (names.has("refs") || names.has("packed-refs"));
  return holdsObjects || (names.has("commondir") && names.has("gitdir"));
}

/** The git directory that `.git` is or leads to. */
export function gitDirectoryOf(root: RootDirectory, dotGit: string): string | undefined {
  const at = root.locate(dotGit);
  if (at === undefined || at === dotGit)
    return at !== undefined && root.isDirectory(at) ? at : named(root, dotGit);
  return root.isDirectory(at) ? onlyGit(root, at) : named(root, at);
}

/** What a `.git` file says. */
function named(root: RootDirectory, file: string): string | undefined {
  const target = /^gitdir: (.+?)\n?$/s.exec(root.text(file) ?? "")?.[1];
  return target === undefined ? undefined : onlyGit(root, locateDirectory(root, parentOf(file), target));
}

/** Links and files may name any directory; what is none of git's must not be moved away as if it were. */
function onlyGit(root: RootDirectory, at: string | undefined): string | undefined {
  return at !== undefined && isGitDirectory(root.list(at)) ? at : undefined;
}

function readRepository(root: RootDirectory, top: string): Repository {
  const dotGit = joined(top, ".git");
  const gitDirectory = gitDirectoryOf(root, dotGit);
  if (gitDirectory === undefined)
    return { top, gitDirectory, places: [dotGit], head: undefined, format: "sha1", objects: [] };
  const common = commonDirectory(root, gitDirectory);
  const objects = objectDirectories(root, common);
  const borrowed = objects.map((at) => (isGitDirectory(root.list(parentOf(at))) ? parentOf(at) : at));
  return {
    top,
    gitDirectory,
    places: outermost([dotGit, gitDirectory, common, ...borrowed]),
    head: headOf(root, gitDirectory, common),
    format: objectFormatOf(root.text(joined(common, "config")) ?? ""),
    objects,
  };
}

function commonDirectory(root: RootDirectory, gitDirectory: string): string {
  const target = root.text(joined(gitDirectory, "commondir"))?.replace(/\n$/, "");
  if (target === undefined) return gitDirectory;
  return onlyGit(root, locateDirectory(root, gitDirectory, target)) ?? gitDirectory;
}

/** The objects of a git directory and those it borrows, by links or by `info/alternates`. */
export function objectDirectories(root: RootDirectory, gitDirectory: string): string[] {
  const found: string[] = [];
  const add = (at: string | undefined, depth: number): void => {
    if (at === undefined || found.includes(at) || depth > MAX_ALTERNATES_DEPTH) return;
    if (root.list(at).entries.some(({ name }) => !OF_OBJECTS.test(name))) return;
    found.push(at);
    for (const line of (root.text(joined(at, "info/alternates")) ?? "").split("\n"))
      if (line !== "" && !line.startsWith("#")) add(locateDirectory(root, at, line), depth + 1);
  };
  add(locateDirectory(root, gitDirectory, "objects"), 0);
  return found;
}

function locateDirectory(root: RootDirectory, from: string, target: string): string | undefined {
  const at = root.locate(target.startsWith("/") ? target : joined(from, target));
  return at !== undefined && root.isDirectory(at) ? at : undefined;
}

/** The first of two equal or nested places stays. */
function outermost(places: readonly string[]): string[] {
  const unique = [...new Set(places)];
  return unique.filter((place) => !unique.some((other) => other !== place && isWithin(place, other)));
}

function headOf(root: RootDirectory, gitDirectory: string, common: string): string | undefined {
  let value = root.text(joined(gitDirectory, "HEAD"))?.trim();
  for (let depth = 0; depth < MAX_REFERENCE_DEPTH && value !== undefined; depth++) {
    if (OBJECT_ID.test(value)) return value;
    const name = /^ref: (refs\/.+)$/.exec(value)?.[1];
    if (name === undefined || name.split("/").includes("..")) return undefined;
    value =
      root.text(joined(gitDirectory, name))?.trim() ??
      root.text(joined(common, name))?.trim() ??
      packedReference(root, common, name);
  }
  return undefined;
}

function packedReference(root: RootDirectory, common: string, name: string): string | undefined {
  const lines = (root.text(joined(common, "packed-refs")) ?? "").split("\n");
  return lines.find((line) => line.endsWith(` ${name}`))?.split(" ")[0];
}
