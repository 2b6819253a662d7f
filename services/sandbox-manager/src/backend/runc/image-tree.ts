/**
 * Owns reading a part of an image as a tree: names, kinds, executable bits and digests of its leaves, which is all
 * that a diff is taken against. Nothing is copied and nothing is mounted.
 *
 * Digests take one pass over the files; that pass lets others run in between.
 */
import { createHash } from "node:crypto";
import { createReadStream, readlinkSync } from "node:fs";
import { MortiseError } from "@mortise/contracts";
import { sha256 } from "../../patch/patch.js";
import { digestOfEntries } from "../tree-store.js";
import type { Tree, TreeEntry } from "../types.js";
import { leavesBelow, lookUp, type ShownLeaf } from "./layers.js";

/** Files read at a time: threads of the pool are few, and the rest of the service needs some. */
const CONCURRENCY = 3;

/** Rejects with MORTISE_SANDBOX_SETUP where there is no such directory, or a link on the way to it. */
export async function readLayersTree(layers: readonly string[], directory: string): Promise<Tree> {
  const place = lookUp(layers, directory);
  if (place.kind === "link") throw noDirectory(directory, `${place.at} is a symbolic link`);
  if (place.kind !== "directory") throw noDirectory(directory, "the image has no such directory");
  const entries: TreeEntry[] = [];
  // Found while others are read, not all at once: directories of a large image take their time.
  const rest = leavesBelow(place.directories, (name) => name === ".git");
  const readSome = async (): Promise<void> => {
    for (const leaf of rest) {
      const entry = await entryOf(leaf);
      if (entry !== undefined) entries.push(entry);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, readSome));
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  return {
    digest: digestOfEntries(entries),
    entries: new Map(entries.map((entry) => [entry.path, entry])),
  };
}

/** Undefined for pipes, sockets and devices: they are no part of a tree. */
async function entryOf({ path, file, stat }: ShownLeaf): Promise<TreeEntry | undefined> {
  if (stat.isSymbolicLink())
    return { path, kind: "symlink", mode: 0o777, sha256: sha256(readlinkSync(file)) };
  if (!stat.isFile()) return undefined;
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return { path, kind: "file", mode: (stat.mode & 0o100) === 0 ? 0o644 : 0o755, sha256: hash.digest("hex") };
}

function noDirectory(directory: string, why: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_SETUP",
    message: `workdir ${JSON.stringify(directory)}: ${why}.`,
    fix: "Give the directory of the image itself, not a link to it.",
  });
}
