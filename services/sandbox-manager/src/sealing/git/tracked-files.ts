/**
 * Owns the list of files a repository of an image tracks, from its index, and what stands in the working tree under
 * these names now. Git reads a copy of the index and nothing else of the image. Does not read contents.
 */
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { compareBytes, isWithin, joined, parentOf } from "../byte-path.js";
import type { RootDirectory } from "../root-directory.js";
import type { HostGit } from "./host-git.js";
import type { Repository } from "./repository.js";
import { linkObjects, makeRepository } from "./scratch-repository.js";

export type LeafMode = "100644" | "100755" | "120000" | "160000";

/** A tracked name and what the working tree has there. */
export interface Leaf {
  /** Relative to the top of the working tree. */
  readonly path: string;
  readonly mode: LeafMode;
  /** Of the recorded commit, for a submodule. */
  readonly commit?: string;
}

export interface TrackedFiles {
  readonly from: "index" | "files";
  /** In order of path; names the working tree has no file for are left out. */
  readonly leaves: readonly Leaf[];
}

/** @param scratch a directory of the host for temporary files */
export async function trackedFiles(
  git: HostGit,
  root: RootDirectory,
  repository: Repository,
  scratch: string,
): Promise<TrackedFiles> {
  const { gitDirectory, top } = repository;
  if (gitDirectory === undefined || root.stat(joined(gitDirectory, "index"))?.isFile() !== true)
    return { from: "files", leaves: allFiles(root, repository) };
  const copy = mkdtempSync(path.join(scratch, "index-"));
  try {
    const directory = path.join(copy, "git");
    makeRepository(directory, repository.format);
    // Only a sparse index needs them: git expands the directories in it.
    linkObjects(root, repository.objects, directory);
    // An index may be split in two files.
    for (const { name, kind, path: at } of root.list(gitDirectory).entries)
      if (kind === "file" && (name === "index" || /^sharedindex\.[0-9a-f]+$/.test(name)))
        copyFileSync(root.host(at), path.join(directory, name));
    const argv = ["ls-files", "--stage", "--sparse", "-z"];
    const listed = await git.run({ gitDirectory: directory, workTree: directory, argv });
    const commits = parse(listed.toString("latin1"));
    const paths = [...commits.keys()].sort(compareBytes);
    const isReal = realDirectories(root);
    const present = paths.filter((name) => isReal(parentOf(joined(top, name))));
    return {
      from: "index",
      leaves: present.flatMap((name) => leafAt(root, top, name, commits.get(name)) ?? []),
    };
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** Path → commit of a submodule, or undefined for a file. Names that leave the working tree are dropped. */
function parse(listed: string): Map<string, string | undefined> {
  const found = new Map<string, string | undefined>();
  for (const line of listed.split("\0")) {
    const [, mode, id, name] = /^(\d{6}) ([0-9a-f]+) \d\t(.+)$/s.exec(line) ?? [];
    if (name === undefined || mode === "040000" || !isTrackable(name)) continue;
    found.set(name, mode === "160000" ? id : undefined);
  }
  return found;
}

function isTrackable(name: string): boolean {
  return name
    .split("/")
    .every((part) => part !== "" && part !== "." && part !== ".." && part.toLowerCase() !== ".git");
}

/** Whether a path has no link in it: a tracked name below a link means what the link leads to, which is not tracked. */
function realDirectories(root: RootDirectory): (directory: string) => boolean {
  const known = new Map<string, boolean>();
  return (directory) => {
    let isReal = known.get(directory);
    if (isReal === undefined) {
      isReal = root.locate(directory) === directory;
      known.set(directory, isReal);
    }
    return isReal;
  };
}

function leafAt(
  root: RootDirectory,
  top: string,
  name: string,
  commit: string | undefined,
): Leaf | undefined {
  const at = joined(top, name);
  const stat = root.stat(at);
  if (stat === undefined) return undefined;
  if (stat.isDirectory()) return commit === undefined ? undefined : { path: name, mode: "160000", commit };
  if (stat.isSymbolicLink()) return { path: name, mode: "120000" };
  if (!stat.isFile()) return undefined;
  return { path: name, mode: (stat.mode & 0o100) === 0 ? "100644" : "100755" };
}

function allFiles(root: RootDirectory, { top, places }: Repository): Leaf[] {
  const leaves: Leaf[] = [];
  const isOther = (at: string) =>
    at.endsWith("/.git") || at === ".git" || places.some((place) => isWithin(at, place));
  for (const { entries } of root.walk(top, undefined, (at) => !isOther(at)))
    for (const { path: at, kind } of entries) {
      if (kind === "directory" || isOther(at)) continue;
      const name = top === "" ? at : at.slice(top.length + 1);
      const leaf = leafAt(root, top, name, undefined);
      if (leaf !== undefined) leaves.push(leaf);
    }
  return leaves.sort((a, b) => compareBytes(a.path, b.path));
}
