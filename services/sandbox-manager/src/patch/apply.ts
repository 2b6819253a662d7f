/**
 * Owns writing a patch into a plain copy of the workspace. Does not apply into an overlay (see runc/upper.ts).
 * The patch is contained (P2) and the directory is a fresh copy of a pristine tree nobody else writes to;
 * still no link is followed: a parent that is not a directory is replaced by one.
 */
import { chmodSync, lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { assertContained } from "./codec.js";
import type { Patch } from "./patch.js";

export function applyToDirectory(patch: Patch, directory: string): void {
  assertContained(patch.entries);
  for (const entry of patch.entries) {
    if (entry.kind === "deleted" && parentIsDirectory(directory, entry.path))
      rmSync(path.join(directory, entry.path), { recursive: true, force: true });
  }
  for (const entry of patch.entries) {
    if (entry.kind === "deleted") continue;
    makeParents(directory, entry.path);
    const file = path.join(directory, entry.path);
    rmSync(file, { recursive: true, force: true });
    if (entry.kind === "symlink") symlinkSync(entry.target, file);
    else {
      writeFileSync(file, entry.content, { flag: "wx" });
      chmodSync(file, entry.mode);
    }
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

function makeParents(directory: string, relative: string): void {
  for (const parent of parents(relative)) {
    const at = path.join(directory, parent);
    if (lstatSync(at, { throwIfNoEntry: false })?.isDirectory()) continue;
    rmSync(at, { force: true });
    mkdirSync(at);
  }
}
