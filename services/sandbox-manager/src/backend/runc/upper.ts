/**
 * Owns the workspace part of an overlay's upper directory: reading what the agent changed out of it, and
 * writing a patch into a fresh one. Both touch only changed files, however large the task is.
 * Does not mount overlays and does not know the format of a patch object.
 *
 * Precondition of both: no process of the sandbox runs, so nothing moves under our feet.
 */
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { assertContained } from "../../patch/codec.js";
import { type Patch, PatchBuilder } from "../../patch/patch.js";
import { leafAt, utf8Name } from "../../patch/snapshot.js";
import { type DiffLimits, SANDBOX_UID, type Tree } from "../types.js";
import { isOpaque, makeWhiteout } from "./syscalls.js";

/** The change a sandbox's upper workspace directory stands for, against the tree below it. */
export function diffUpper(tree: Tree, upper: string, limits: DiffLimits): Patch {
  const builder = new PatchBuilder(tree, limits);
  if (lstatSync(upper, { throwIfNoEntry: false })?.isDirectory()) walk(builder, tree, upper, "");
  return builder.build();
}

function walk(builder: PatchBuilder, tree: Tree, upper: string, relative: string): void {
  const directory = path.join(upper, relative);
  const children = readdirSync(directory, { withFileTypes: true, encoding: "buffer" });
  if (isOpaque(directory)) {
    if (relative === "") for (const leafPath of tree.entries.keys()) builder.absent(leafPath);
    else builder.absent(relative);
  }
  for (const child of children) {
    const name = utf8Name(child.name);
    if (name === undefined) {
      builder.skip(path.join(relative, child.name.toString("latin1")), "name-not-utf8");
      continue;
    }
    const leafPath = relative === "" ? name : `${relative}/${name}`;
    if (child.isDirectory()) {
      if (tree.entries.has(leafPath)) builder.absent(leafPath);
      walk(builder, tree, upper, leafPath);
    } else recordLeaf(builder, tree, upper, leafPath);
  }
}

function recordLeaf(builder: PatchBuilder, tree: Tree, upper: string, leafPath: string): void {
  const file = path.join(upper, leafPath);
  const stat = lstatSync(file);
  if (stat.isCharacterDevice() && stat.rdev === 0) {
    builder.absent(leafPath);
    return;
  }
  // A leaf over a directory hides everything that was below.
  if (!tree.entries.has(leafPath)) builder.absent(leafPath);
  const leaf = leafAt(file);
  if (leaf === undefined) builder.skip(leafPath, "special-file");
  else builder.present(leafPath, leaf);
}

/** Makes an empty upper directory show `tree` with the patch applied. */
export function applyToUpper(patch: Patch, upper: string): void {
  assertContained(patch.entries);
  const kept = patch.entries.filter((entry) => entry.kind !== "deleted");
  const directories = new Set(kept.flatMap((entry) => ancestors(entry.path)));
  const leaves = new Set(kept.map((entry) => entry.path));
  for (const entry of kept) {
    makeDirectories(upper, entry.path);
    const file = path.join(upper, entry.path);
    if (entry.kind === "symlink") symlinkSync(entry.target, file);
    else {
      writeFileSync(file, entry.content, { flag: "wx" });
      chmodSync(file, entry.mode);
    }
    lchownSync(file, SANDBOX_UID, SANDBOX_UID);
  }
  for (const { kind, path: removed } of patch.entries) {
    // A new directory in its place, or a new leaf above it, hides the old leaf already.
    if (kind !== "deleted" || directories.has(removed) || ancestors(removed).some((p) => leaves.has(p)))
      continue;
    makeDirectories(upper, removed);
    makeWhiteout(path.join(upper, removed));
  }
}

function ancestors(relative: string): string[] {
  const parts = relative.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

function makeDirectories(upper: string, relative: string): void {
  for (const parent of ancestors(relative)) {
    const at = path.join(upper, parent);
    if (lstatSync(at, { throwIfNoEntry: false }) !== undefined) continue;
    mkdirSync(at, { mode: 0o755 });
    chownSync(at, SANDBOX_UID, SANDBOX_UID);
  }
}
