/**
 * Owns the difference between a pristine tree and a whole workspace as it is now, read from a directory or
 * from a tar of it. Does not need an overlay; the runc backend reads only what changed (see upper.ts).
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
import { type FoundLeaf, type Patch, PatchBuilder } from "./patch.js";
import type { TarFound } from "./tar.js";

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
export function diffDirectory(tree: Tree, directory: string, limits: DiffLimits): Patch {
  const builder = new PatchBuilder(tree, limits);
  const seen = new Set<string>();
  const walk = (relative: string): void => {
    for (const child of readdirSync(path.join(directory, relative), {
      withFileTypes: true,
      encoding: "buffer",
    })) {
      const name = utf8Name(child.name);
      const leafPath = relative === "" ? (name ?? "") : `${relative}/${name ?? ""}`;
      if (name === undefined) {
        builder.skip(`${relative}/${child.name.toString("latin1")}`, "name-not-utf8");
      } else if (child.isDirectory()) {
        walk(leafPath);
      } else {
        seen.add(leafPath);
        record(builder, leafPath, leafAt(path.join(directory, leafPath)));
      }
    }
  };
  walk("");
  recordMissing(builder, tree, seen);
  return builder.build();
}

/** The same from a tar whose member names begin with `prefix`. */
export function diffTar(tree: Tree, members: readonly TarFound[], prefix: string, limits: DiffLimits): Patch {
  const builder = new PatchBuilder(tree, limits);
  const seen = new Set<string>();
  for (const member of members) {
    const leafPath = member.name.startsWith(prefix)
      ? member.name.slice(prefix.length).replace(/\/$/, "")
      : "";
    if (leafPath === "" || member.type === "directory") continue;
    seen.add(leafPath);
    record(builder, leafPath, tarLeaf(member, members, prefix));
  }
  recordMissing(builder, tree, seen);
  return builder.build();
}

function tarLeaf(member: TarFound, members: readonly TarFound[], prefix: string): FoundLeaf | undefined {
  if (member.type === "symlink") return { kind: "symlink", target: member.target };
  // The second name of a hard-linked file carries no content of its own.
  const source =
    member.type === "link"
      ? members.find((other) => other.type === "file" && `${prefix}${member.target}`.endsWith(other.name))
      : member;
  if (source === undefined || source.type !== "file") return undefined;
  return {
    kind: "file",
    isExecutable: (member.mode & 0o100) !== 0,
    size: source.content.byteLength,
    read: () => source.content,
  };
}

function record(builder: PatchBuilder, leafPath: string, leaf: FoundLeaf | undefined): void {
  if (leaf === undefined) builder.skip(leafPath, "special-file");
  else builder.present(leafPath, leaf);
}

function recordMissing(builder: PatchBuilder, tree: Tree, seen: ReadonlySet<string>): void {
  for (const leafPath of tree.entries.keys()) if (!seen.has(leafPath)) builder.missing(leafPath);
}
