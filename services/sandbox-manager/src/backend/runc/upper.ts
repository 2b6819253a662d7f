/**
 * Owns reading out of an overlay's upper layers what was changed in the workspace. Only changed files are touched,
 * however large the task is. Does not mount overlays and does not know the format of a patch object.
 *
 * Precondition: no process of the sandbox runs, so nothing moves under our feet.
 */
import { lstatSync, readdirSync } from "node:fs";
import path from "node:path";
import { type Patch, PatchBuilder } from "../../patch/patch.js";
import { leafAt, utf8Name } from "../../patch/snapshot.js";
import type { DiffLimits, Tree } from "../types.js";
import { isWhiteout } from "./layers.js";
import { isOpaque } from "./syscalls.js";

/**
 * The change that layers stand for, against the tree below all of them.
 * @param uppers roots of the layers, topmost first
 * @param workdir absolute path of the tree inside
 */
export function diffUppers(
  tree: Tree,
  uppers: readonly string[],
  workdir: string,
  limits: DiffLimits,
): Patch {
  const builder = new PatchBuilder(tree, limits);
  for (const upper of uppers.toReversed()) {
    const workspace = workspaceIn(upper, workdir);
    if (workspace.hidesLower) for (const leafPath of builder.leaves()) builder.absent(leafPath);
    if (workspace.directory !== undefined) walk(builder, workspace.directory, "");
  }
  return builder.build();
}

/** Whoever may write to `/` may also remove or replace the workspace itself, or a directory above it. */
function workspaceIn(upper: string, workdir: string): { directory?: string; hidesLower: boolean } {
  let directory = upper;
  let hidesLower = false;
  for (const part of workdir.split("/").slice(1)) {
    directory = path.join(directory, part);
    const stat = lstatSync(directory, { throwIfNoEntry: false });
    if (stat === undefined) return { hidesLower };
    if (!stat.isDirectory()) return { hidesLower: true };
    hidesLower ||= isOpaque(directory);
  }
  return { directory, hidesLower };
}

function walk(builder: PatchBuilder, upper: string, relative: string): void {
  const directory = path.join(upper, relative);
  const children = readdirSync(directory, { withFileTypes: true, encoding: "buffer" });
  if (relative !== "" && isOpaque(directory)) builder.absent(relative);
  for (const child of children) {
    const name = utf8Name(child.name);
    if (name === undefined) {
      builder.skip(path.join(relative, child.name.toString("latin1")), "name-not-utf8");
      continue;
    }
    const leafPath = relative === "" ? name : `${relative}/${name}`;
    if (child.isDirectory()) {
      if (builder.isLeaf(leafPath)) builder.absent(leafPath);
      walk(builder, upper, leafPath);
    } else recordLeaf(builder, upper, leafPath);
  }
}

function recordLeaf(builder: PatchBuilder, upper: string, leafPath: string): void {
  const file = path.join(upper, leafPath);
  const stat = lstatSync(file);
  if (isWhiteout(stat)) {
    builder.absent(leafPath);
    return;
  }
  // A leaf over a directory hides everything that was below.
  if (!builder.isLeaf(leafPath)) builder.absent(leafPath);
  const leaf = leafAt(file);
  if (leaf === undefined) builder.skip(leafPath, "special-file");
  else builder.present(leafPath, leaf);
}
