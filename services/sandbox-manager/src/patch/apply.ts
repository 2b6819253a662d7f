/**
 * Owns writing a patch into a workspace: a plain copy, or an overlay that shows one.
 * The patch is contained (P2) and the directory is fresh and pristine, and nobody else writes to it;
 * still no link is followed: a parent that is not a directory is replaced by one.
 */
import { chmodSync, lchownSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { assertContained } from "./codec.js";
import type { Patch } from "./patch.js";

/** Whose the files and directories become that are written. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** @param owner the caller itself when absent */
export function applyToDirectory(patch: Patch, directory: string, owner?: Owner): void {
  assertContained(patch.entries);
  for (const entry of patch.entries) {
    if (entry.kind === "deleted" && parentIsDirectory(directory, entry.path))
      rmSync(path.join(directory, entry.path), { recursive: true, force: true });
  }
  for (const entry of patch.entries) {
    if (entry.kind === "deleted") continue;
    makeParents(directory, entry.path, owner);
    const file = path.join(directory, entry.path);
    rmSync(file, { recursive: true, force: true });
    if (entry.kind === "symlink") symlinkSync(entry.target, file);
    else {
      writeFileSync(file, entry.content, { flag: "wx" });
      chmodSync(file, entry.mode);
    }
    own(file, owner);
  }
}

function parents(relative: string): string[] {
  const parts = relative.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function parentIsDirectory(directory: string, relative: string): boolean {
  return parents(relative).every((parent) =>
    lstatSync(path.join(directory, parent), { throwIfNoEntry: false })?.isDirectory(),
  );
}

function own(file: string, owner: Owner | undefined): void {
  if (owner !== undefined) lchownSync(file, owner.uid, owner.gid);
}

function makeParents(directory: string, relative: string, owner: Owner | undefined): void {
  for (const parent of parents(relative)) {
    const at = path.join(directory, parent);
    if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory()) continue;
    rmSync(at, { force: true });
    mkdirSync(at, { mode: 0o755 });
    own(at, owner);
  }
}
