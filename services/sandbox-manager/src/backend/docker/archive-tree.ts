/**
 * Owns reading a directory of a container as the engine archives it: as the tree a diff is taken against, and as the
 * diff itself. One file is in memory at a time, besides what changed. Does not write.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import path from "node:path";
import type { Readable } from "node:stream";
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import { extract } from "tar-stream";
import { type FoundLeaf, type Patch, PatchBuilder, sha256 } from "../../patch/patch.js";
import { packTar, type TarMember } from "../../patch/tar.js";
import { MAX_TAR_BYTES, MAX_TAR_MEMBERS } from "../files.js";
import { digestOfEntries } from "../tree-store.js";
import type { DiffLimits, Tree, TreeEntry } from "../types.js";

/** What an undecodable byte of a name has become. */
const NOT_UTF8 = "\ufffd";
/**
 * Content read for one diff or one archive. What is unchanged is known by its digest only, so all of a workspace is
 * read, and a hole costs as much as what it stands for.
 */
const MAX_READ_BYTES = 8 * 1024 ** 3;
/** Bits of Go's `FileMode`, in which the engine describes a file. */
const GO_MODE_DIRECTORY = 2 ** 31;
const GO_MODE_SYMLINK = 2 ** 27;

/** MORTISE_SANDBOX_SETUP: the image has none where a workspace is to be. */
export class NoSuchDirectory extends MortiseError {
  constructor(directory: string, why: string) {
    super({
      code: "MORTISE_SANDBOX_SETUP",
      message: `workdir ${JSON.stringify(directory)}: ${why}.`,
      fix: "Give the directory of the image itself, not a link to it.",
    });
  }
}

/** The leaves a container has below a directory. Rejects with MORTISE_SANDBOX_SETUP where there is none. */
export async function readContainerTree(container: Docker.Container, directory: string): Promise<Tree> {
  const why = await whyNoDirectory(container, directory);
  if (why !== undefined) throw new NoSuchDirectory(directory, why);
  const entries = new Map<string, TreeEntry>();
  for await (const found of leavesOf(container, directory, { isWanted: () => false })) {
    const isHidden = found.path.includes(NOT_UTF8) || found.path.split("/").includes(".git");
    if (found.kind === "special" || found.kind === "directory" || found.kind === "unread" || isHidden)
      continue;
    const entry = found.kind === "hardlink" ? entries.get(found.target) : found.entry;
    if (entry !== undefined) entries.set(found.path, { ...entry, path: found.path });
  }
  const sorted = [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  return { digest: digestOfEntries(sorted), entries: new Map(sorted.map((entry) => [entry.path, entry])) };
}

/** What a workspace was before anything ran. */
export interface WorkspaceBase {
  readonly directory: string;
  readonly tree: Tree;
  /** What the image had there before the tree was laid over it: no part of the change unless it was changed. */
  readonly below: Tree | undefined;
}

/** What changed in a workspace. Precondition: nothing runs in the container. */
export async function diffContainer(
  container: Docker.Container,
  { directory, tree, below }: WorkspaceBase,
  limits: DiffLimits,
): Promise<Patch> {
  const builder = new PatchBuilder(tree, limits);
  const seen = new Map<string, FoundFile | FoundLink>();
  const isWanted = (size: number) => size <= limits.maxFileBytes;
  // Whoever may write to `/` may also remove or replace the workspace itself, or a directory above it.
  const isThere = (await whyNoDirectory(container, directory)) === undefined;
  const leaves = isThere ? leavesOf(container, directory, { isWanted, maxBytes: MAX_READ_BYTES }) : [];
  for await (const found of leaves) {
    if (builder.isFull || found.kind === "unread") {
      // Of what was not looked at nobody knows whether it is there.
      builder.skip(found.path, "over-limit");
      return builder.build();
    }
    if (found.path.includes(NOT_UTF8)) builder.skip(found.path, "name-not-utf8");
    else if (found.kind === "directory") builder.enters(found.path);
    else if (found.kind === "special") builder.skip(found.path, "special-file");
    else {
      const source = found.kind === "hardlink" ? seen.get(found.target) : found;
      if (source === undefined) continue;
      const named = { ...source, path: found.path };
      if (isSame(tree.entries.get(found.path) ?? below?.entries.get(found.path), named))
        seen.set(found.path, withoutContent(named));
      else {
        const whole = await withContent(container, directory, named, isWanted);
        builder.present(found.path, leafOf(whole));
        seen.set(found.path, withoutContent(named));
      }
    }
  }
  for (const leafPath of tree.entries.keys()) if (!seen.has(leafPath)) builder.missing(leafPath);
  return builder.build();
}

/**
 * Regular files and links below a directory of a container that has ended, as a tar. Rejects when there is more than
 * `MAX_TAR_BYTES` or `MAX_TAR_MEMBERS` of it, before it is read.
 */
export async function packContainer(container: Docker.Container, directory: string): Promise<Uint8Array> {
  const members: TarMember[] = [];
  const all = { isWanted: () => true, maxBytes: MAX_TAR_BYTES };
  for await (const found of leavesOf(container, directory, all)) {
    if (found.kind === "unread" || members.length >= MAX_TAR_MEMBERS)
      throw new Error(`${directory} holds too much to be packed`);
    if (found.kind === "symlink")
      members.push({ name: found.path, kind: "symlink", mode: 0o777, target: found.target });
    else if (found.kind === "file")
      members.push({ name: found.path, kind: "file", mode: found.entry.mode, content: found.content! });
  }
  return packTar(members);
}

interface FoundFile {
  readonly kind: "file";
  readonly path: string;
  /** Where the content is, under its first name. */
  readonly origin: string;
  readonly entry: TreeEntry;
  readonly size: number;
  readonly content?: Uint8Array;
}
interface FoundLink {
  readonly kind: "symlink";
  readonly path: string;
  readonly entry: TreeEntry;
  readonly target: string;
}
type Found =
  | FoundFile
  | FoundLink
  | { readonly kind: "hardlink"; readonly path: string; readonly target: string }
  | { readonly kind: "special"; readonly path: string }
  | { readonly kind: "directory"; readonly path: string }
  /** The last one: it, and what would have come after it, is more than may be read. */
  | { readonly kind: "unread"; readonly path: string };

interface Reading {
  /** Whether the content of a file of this size is kept. */
  readonly isWanted: (size: number) => boolean;
  /** Of all files together. */
  readonly maxBytes?: number;
}

function isSame(before: TreeEntry | undefined, found: FoundFile | FoundLink): boolean {
  const { kind, mode, sha256: digest } = found.entry;
  return before?.kind === kind && before.mode === mode && before.sha256 === digest;
}

function withoutContent(found: FoundFile | FoundLink): FoundFile | FoundLink {
  if (found.kind === "symlink") return found;
  const { content: _, ...rest } = found;
  return rest;
}

/** A further name of a file whose content was passed over is read for itself. */
async function withContent(
  container: Docker.Container,
  directory: string,
  found: FoundFile | FoundLink,
  isWanted: (size: number) => boolean,
): Promise<FoundFile | FoundLink> {
  if (found.kind === "symlink" || found.content !== undefined || !isWanted(found.size)) return found;
  const file = path.join(directory, found.origin);
  for await (const one of leavesOf(container, file, { isWanted: () => true }))
    if (one.kind === "file" && one.content !== undefined) return { ...found, content: one.content };
  return found;
}

function leafOf(found: FoundFile | FoundLink): FoundLeaf {
  if (found.kind === "symlink") return { kind: "symlink", target: found.target };
  const { size, content, entry } = found;
  const read = () => {
    if (content === undefined) throw new Error(`${found.path} was not read`);
    return content;
  };
  return { kind: "file", isExecutable: entry.mode === 0o755, size, read };
}

/** What is below a directory by paths relative to it; of a file, the file under an empty path. */
async function* leavesOf(
  container: Docker.Container,
  directory: string,
  { isWanted, maxBytes = Number.POSITIVE_INFINITY }: Reading,
): AsyncGenerator<Found> {
  const top = path.basename(directory);
  const relative = (name: string) => (name === top ? "" : name.slice(top.length + 1).replace(/\/$/, ""));
  const archive = (await container.getArchive({ path: directory })) as Readable;
  const members = extract();
  archive.on("error", (error) => members.destroy(error)).pipe(members);
  let leftBytes = maxBytes;
  try {
    for await (const member of members) {
      const { name, type, linkname, mode, size = 0 } = member.header;
      const at = relative(name);
      leftBytes -= size;
      if (leftBytes < 0) {
        yield { kind: "unread", path: at };
        return;
      }
      const content: Uint8Array[] = [];
      const hash = createHash("sha256");
      const isKept = isWanted(size);
      for await (const chunk of member as AsyncIterable<Uint8Array>) {
        hash.update(chunk);
        if (isKept) content.push(chunk);
      }
      if (type === "directory") {
        if (at !== "") yield { kind: "directory", path: at };
      } else if (type === "symlink") yield linkOf(at, linkname ?? "");
      else if (type === "link") yield { kind: "hardlink", path: at, target: relative(linkname ?? "") };
      else if (type === "file" || type === "contiguous-file") {
        const entry = {
          path: at,
          kind: "file" as const,
          mode: ((mode ?? 0) & 0o100) === 0 ? 0o644 : 0o755,
          sha256: hash.digest("hex"),
        };
        const kept = isKept ? { content: Buffer.concat(content) } : {};
        yield { kind: "file", path: at, origin: at, entry, size, ...kept };
      } else yield { kind: "special", path: at };
    }
  } finally {
    // Whoever looks at no more of it must not leave the engine reading on.
    archive.destroy();
  }
}

function linkOf(at: string, target: string): FoundLink {
  const entry = { path: at, kind: "symlink" as const, mode: 0o777, sha256: sha256(target) };
  return { kind: "symlink", path: at, entry, target };
}

/** The engine would follow links on the way. Undefined when every component is a directory. */
async function whyNoDirectory(container: Docker.Container, directory: string): Promise<string | undefined> {
  let at = "";
  for (const part of directory.split("/").slice(1)) {
    at += `/${part}`;
    const kind = await kindAt(container, at);
    if (kind === "link") return `${at} is a symbolic link`;
    if (kind !== "directory") return "the image has no such directory";
  }
  return undefined;
}

async function kindAt(container: Docker.Container, at: string): Promise<"directory" | "link" | "other"> {
  try {
    const reply = await container.infoArchive({ path: at });
    const header = (reply as IncomingMessage).headers["x-docker-container-path-stat"] as string;
    const { mode } = JSON.parse(Buffer.from(header, "base64").toString()) as { mode: number };
    if ((mode & GO_MODE_SYMLINK) !== 0) return "link";
    // Go's highest mode bit makes the number negative here.
    return (mode & GO_MODE_DIRECTORY) !== 0 ? "directory" : "other";
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return "other";
    throw error;
  }
}
