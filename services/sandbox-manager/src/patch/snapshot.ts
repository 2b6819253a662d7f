/**
 * Owns the difference between a pristine tree and a whole workspace as it is now, read from a directory.
 * Does not need an overlay; the runc backend reads only what changed (see upper.ts).
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
} from "node:fs";
import path from "node:path";
import type { DiffLimits, Tree } from "../backend/types.js";
import { Pace } from "./pace.js";
import { type FoundLeaf, type Patch, PatchBuilder } from "./patch.js";

/** Names that are not UTF-8 cannot be written into the manifest; they are skipped, never mangled. */
export function utf8Name(name: Buffer): string | undefined {
  const text = name.toString("utf8");
  return Buffer.from(text, "utf8").equals(name) ? text : undefined;
}

/** Reads a regular file without following a link that took its place. */
export function readWithoutFollowing(file: string): Uint8Array {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`${file} is no longer a regular file`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** What stands at a path, or undefined for sockets, pipes and devices. */
export function leafAt(file: string): FoundLeaf | undefined {
  const stat = lstatSync(file);
  if (stat.isSymbolicLink()) return { kind: "symlink", target: readlinkSync(file) };
  if (!stat.isFile()) return undefined;
  return {
    kind: "file",
    isExecutable: (stat.mode & 0o100) !== 0,
    size: stat.size,
    read: () => readWithoutFollowing(file),
  };
}

/** The change from `tree` to the content of a directory that nobody writes any more. */
export async function diffDirectory(tree: Tree, directory: string, limits: DiffLimits): Promise<Patch> {
  const builder = new PatchBuilder(tree, limits);
  const pace = new Pace();
  const seen = new Set<string>();
  const walk = async (relative: string): Promise<void> => {
    if (relative !== "" && !builder.enters(relative)) return;
    for (const child of readdirSync(path.join(directory, relative), {
      withFileTypes: true,
      encoding: "buffer",
    })) {
      if (builder.isFull) return;
      await pace.step();
      const name = utf8Name(child.name);
      const leafPath = relative === "" ? (name ?? "") : `${relative}/${name ?? ""}`;
      if (name === undefined) {
        builder.skip(path.join(relative, child.name.toString("latin1")), "name-not-utf8");
      } else if (child.isDirectory()) {
        await walk(leafPath);
      } else {
        seen.add(leafPath);
        record(builder, leafPath, leafAt(path.join(directory, leafPath)));
      }
    }
  };
  await walk("");
  // Of what was not looked at nobody knows whether it is there.
  if (!builder.isFull) recordMissing(builder, tree, seen);
  return builder.build();
}

function record(builder: PatchBuilder, leafPath: string, leaf: FoundLeaf | undefined): void {
  if (leaf === undefined) builder.skip(leafPath, "special-file");
  else builder.present(leafPath, leaf);
}

function recordMissing(builder: PatchBuilder, tree: Tree, seen: ReadonlySet<string>): void {
  for (const leafPath of tree.entries.keys()) if (!seen.has(leafPath)) builder.missing(leafPath);
}
