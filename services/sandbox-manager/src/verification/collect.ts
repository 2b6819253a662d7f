/**
 * Owns reading what a step left, from outside and after its processes have ended. What is there was made by code that
 * is not trusted: only regular files are read, no link is followed, nothing large is read into memory.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from "node:fs";
import path from "node:path";
import type { CollectedPlace } from "@mortise/contracts";
import { MAX_HOST_PATH_BYTES, resolveDirectory } from "../backend/files.js";
import type { Sandbox } from "../backend/types.js";
import { utf8Name } from "../patch/snapshot.js";
import { unpackTar } from "../patch/tar.js";

/** Of all files of one place; a directory full of small files is refused too. */
const MAX_PLACE_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 256;
/** Directories count too: what a step left must not decide whether it can be read. */
const MAX_ENTRIES = 10_000;

export interface Collected {
  /** Absolute, inside. */
  readonly path: string;
  readonly content: Uint8Array;
  /** Why it was not read; empty when it was. */
  readonly refused: string;
}

export type Place = Pick<CollectedPlace, "directory" | "maxFileBytes">;

/** Every leaf below the place, read or refused, in the order of their names. A place that is no directory has none. */
export async function collect(sandbox: Sandbox, place: Place): Promise<Collected[]> {
  const root = sandbox.hostRoot;
  return root === undefined ? fromArchive(sandbox, place) : fromHost(root, place);
}

function fromHost(root: string, { directory, maxFileBytes }: Place): Collected[] {
  const top = directoryAt(root, directory);
  if (typeof top === "string") return [refused(directory, top)];
  const found: Collected[] = [];
  let left = MAX_PLACE_BYTES;
  let nEntries = 0;
  const walk = (relative: string): void => {
    for (const name of namesIn(path.join(top.host, relative))) {
      nEntries += 1;
      if (found.length >= MAX_FILES || nEntries > MAX_ENTRIES) return;
      const member = path.join(relative, name);
      if (Buffer.byteLength(path.join(top.host, member)) > MAX_HOST_PATH_BYTES) {
        found.push(refused(path.join(directory, relative), "a path below it is too long"));
        return;
      }
      const stat = lstatSync(path.join(top.host, member));
      if (stat.isDirectory()) {
        walk(member);
        continue;
      }
      const one = readLeaf(path.join(top.host, member), Math.min(maxFileBytes, left));
      if (typeof one !== "string") left -= one.byteLength;
      const inside = path.join(directory, member);
      found.push(
        typeof one === "string" ? refused(inside, one) : { path: inside, content: one, refused: "" },
      );
    }
  };
  walk("");
  return found;
}

/** Names that are no text name nothing that is asked for. */
function namesIn(directory: string): string[] {
  const names = readdirSync(directory, { encoding: "buffer" }).map(utf8Name);
  return names.filter((name) => name !== undefined).sort();
}

function directoryAt(root: string, directory: string): { host: string } | string {
  try {
    return { host: resolveDirectory(root, directory.slice(1)) };
  } catch {
    return "it is no directory, or a link leads there";
  }
}

/** The bytes, or why they are not read. */
function readLeaf(file: string, maxBytes: number): Uint8Array | string {
  if (lstatSync(file).isSymbolicLink()) return "it is a symbolic link";
  if (!lstatSync(file).isFile()) return "it is no regular file";
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return "it is no regular file";
    // Of a file with a second name, the other name may be anywhere.
    if (stat.nlink > 1) return "it is a hard link";
    if (stat.size > maxBytes) return `it has ${stat.size} bytes, ${maxBytes} are read at most`;
    const bytes = Buffer.alloc(stat.size);
    return bytes.subarray(0, readSync(fd, bytes, 0, stat.size, 0));
  } finally {
    closeSync(fd);
  }
}

/** Of backends that give no directory of the host. */
async function fromArchive(sandbox: Sandbox, { directory, maxFileBytes }: Place): Promise<Collected[]> {
  const tar = await sandbox.getTar(directory).catch(() => undefined);
  if (tar === undefined) return [refused(directory, "it is no directory, or a link leads there")];
  return (await unpackTar(tar, MAX_PLACE_BYTES))
    .filter(({ type }) => type !== "directory")
    .map(({ name, type, content }) => {
      const inside = path.join(directory, name);
      if (type !== "file") return refused(inside, `it is a ${type}`);
      if (content.byteLength > maxFileBytes)
        return refused(inside, `it has ${content.byteLength} bytes, ${maxFileBytes} are read at most`);
      return { path: inside, content, refused: "" };
    });
}

function refused(inside: string, reason: string): Collected {
  return { path: inside, content: new Uint8Array(), refused: reason };
}
