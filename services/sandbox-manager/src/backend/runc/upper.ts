/**
 * Owns reading out of an overlay's upper layers what was changed in the workspace. Only changed files are touched,
 * however large the task is. Does not mount overlays and does not know the format of a patch object.
 *
 * Precondition: no process of the sandbox runs, so nothing moves under our feet.
 */
import { lstatSync, readdirSync } from "node:fs";
import path from "node:path";
import { Pace } from "../../patch/pace.js";
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
export async function diffUppers(
  tree: Tree,
  uppers: readonly string[],
  workdir: string,
  limits: DiffLimits,
): Promise<Patch> {
  const builder = new PatchBuilder(tree, limits);
  const pace = new Pace();
  for (const upper of uppers.toReversed()) {
    const workspace = workspaceIn(upper, workdir);
    if (workspace.hidesLower) for (const leafPath of builder.leaves()) builder.absent(leafPath);
    if (workspace.directory !== undefined) await walk({ builder, pace, upper: workspace.directory }, "");
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

interface Walk {
  readonly builder: PatchBuilder;
  readonly pace: Pace;
  /** The workspace in the layer. */
  readonly upper: string;
}

async function walk(at: Walk, relative: string): Promise<void> {
  const { builder, pace, upper } = at;
  if (relative !== "" && !builder.enters(relative)) return;
  const directory = path.join(upper, relative);
  const children = readdirSync(directory, { withFileTypes: true, encoding: "buffer" });
  if (relative !== "" && isOpaque(directory)) builder.absent(relative);
  for (const child of children) {
    if (builder.isFull) return;
    await pace.step();
    const name = utf8Name(child.name);
    if (name === undefined) {
      builder.skip(path.join(relative, child.name.toString("latin1")), "name-not-utf8");
      continue;
    }
    const leafPath = relative === "" ? name : `${relative}/${name}`;
    if (child.isDirectory()) {
      if (builder.isLeaf(leafPath)) builder.absent(leafPath);
      await walk(at, leafPath);
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
