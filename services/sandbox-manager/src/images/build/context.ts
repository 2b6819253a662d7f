/**
 * Owns the context of a build: which files of a task's environment folder go to the builder, their digest, and the
 * archive of them. Times and owners are the same for everyone, so that equal content gives an equal archive.
 *
 * X1  Hidden tests and the solution never go: not their folders, not a link to them, not a copy of one of their files.
 * X2  What is sent is what was hashed, or nothing.
 */
import { createHash } from "node:crypto";
import {
  constants,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { MortiseError } from "@mortise/contracts";
import { type Pack, pack } from "tar-stream";
import { ignoreRules } from "./ignore-file.js";

export interface ContextEntry {
  /** Relative, `/`-separated. */
  readonly path: string;
  readonly kind: "file" | "directory" | "symlink";
  readonly mode: number;
  readonly size: number;
  /** Of a file's content or a link's target; empty for a directory. */
  readonly sha256: string;
  readonly target?: string;
}

export interface BuildContext {
  /** Absolute. */
  readonly directory: string;
  readonly entries: readonly ContextEntry[];
  readonly dockerfile: string;
  /** Text of `.dockerignore`, when there is one. */
  readonly ignoreFile: string | undefined;
  readonly bytes: number;
  /** Over paths, kinds, modes and contents. */
  readonly digest: string;
}

/** A file that is added to the archive, or takes the place of one. */
export interface AddedFile {
  readonly path: string;
  readonly content: string;
}

const WITHHELD: readonly string[] = ["tests", "solution"];
const ALWAYS_SENT: ReadonlySet<string> = new Set(["Dockerfile", ".dockerignore"]);
const MAX_ENTRIES = 200_000;
/** Shorter files, such as an empty `__init__.py`, are alike by chance. */
const MIN_TELLING_BYTES = 64;
/** 2000-01-01: archives of old formats cannot tell times before 1980. */
const TIME = new Date(946_684_800_000);

/** @param task its directory. Rejects with MORTISE_TASK_BUILD. */
export async function readContext(task: string, maxBytes: number): Promise<BuildContext> {
  const directory = path.join(realpathSync(task), "environment");
  if (!lstatSync(directory).isDirectory()) throw refused("environment", "it is not a directory itself");
  const dockerfile = textOf(directory, "Dockerfile");
  if (dockerfile === undefined) throw refused("environment/Dockerfile", "it is not a file itself");
  const ignoreFile = textOf(directory, ".dockerignore");
  const isIgnored = ignoreRules(ignoreFile ?? "");
  const withheld = await withheldFiles(path.dirname(directory));
  const entries: ContextEntry[] = [];
  let bytes = 0;
  for (const { name, stat } of below(directory, WITHHELD)) {
    if (!ALWAYS_SENT.has(name) && isIgnored(name)) continue;
    if (entries.length >= MAX_ENTRIES) throw refused("environment", `it has over ${MAX_ENTRIES} entries`);
    if (stat.isFile()) bytes += stat.size;
    if (bytes > maxBytes)
      throw refused(
        "environment",
        `its files are over ${maxBytes} bytes`,
        "Leave files out by .dockerignore, or raise sandbox.images.build.contextBytes.",
      );
    const entry = await entryOf(directory, name, stat);
    const hidden =
      withheld.get(identity(stat)) ?? (isTelling(entry) ? withheld.get(entry.sha256) : undefined);
    if (hidden !== undefined)
      throw refused(
        `environment/${name}`,
        `it is the same as ${hidden}, which no agent may see`,
        "Remove it, or name it in environment/.dockerignore.",
      ); // X1
    entries.push(entry);
  }
  const digest = createHash("sha256");
  for (const { path: name, kind, mode, sha256 } of entries)
    digest.update(`${name}\0${kind}\0${mode}\0${sha256}\n`);
  return { directory, entries, dockerfile, ignoreFile, bytes, digest: digest.digest("hex") };
}

/** The archive; it breaks off when a file is no longer what it was (X2). */
export function contextArchive(context: BuildContext, added: readonly AddedFile[]): Readable {
  const archive = pack();
  write(archive, context, added).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return archive as unknown as Readable;
}

async function write(
  archive: Pack,
  { directory, entries }: BuildContext,
  added: readonly AddedFile[],
): Promise<void> {
  const replaced = new Set(added.map((file) => file.path));
  for (const { path: name, content } of added)
    archive.entry({ name, mode: 0o644, mtime: TIME }, Buffer.from(content));
  for (const entry of entries) {
    if (replaced.has(entry.path)) continue;
    const header = { name: entry.path, mode: entry.mode, mtime: TIME };
    if (entry.kind === "directory") archive.entry({ ...header, type: "directory" });
    else if (entry.kind === "symlink") archive.entry({ ...header, type: "symlink", linkname: entry.target! });
    else await writeFile(() => archive.entry({ ...header, size: entry.size }), directory, entry);
  }
}

async function writeFile(
  begin: () => NodeJS.WritableStream,
  directory: string,
  entry: ContextEntry,
): Promise<void> {
  const handle = await openPlain(path.join(directory, entry.path));
  const hash = createHash("sha256");
  const hashed = async function* (chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      yield chunk;
    }
    if (hash.digest("hex") !== entry.sha256)
      throw refused(`environment/${entry.path}`, "it changed while it was read");
  };
  const end = Math.max(0, entry.size - 1);
  const source = entry.size === 0 ? Readable.from([]) : handle.createReadStream({ end, autoClose: false });
  try {
    await pipeline(source, hashed, begin());
  } finally {
    await handle.close();
  }
}

async function entryOf(directory: string, name: string, stat: Stats): Promise<ContextEntry> {
  const file = path.join(directory, name);
  if (stat.isDirectory()) return { path: name, kind: "directory", mode: 0o755, size: 0, sha256: "" };
  if (stat.isSymbolicLink()) {
    const target = readlinkSync(file);
    const reached = path.posix.join(path.posix.dirname(name), target);
    if (path.posix.isAbsolute(target) || reached === ".." || reached.startsWith("../"))
      throw refused(
        `environment/${name}`,
        `it is a link to ${JSON.stringify(target)}, outside of the context`,
        "Put the file there itself, or name the link in environment/.dockerignore.",
      );
    return { path: name, kind: "symlink", mode: 0o777, size: 0, sha256: digestOf(target), target };
  }
  if (!stat.isFile()) throw refused(`environment/${name}`, "it is neither file, directory nor link");
  const mode = (stat.mode & 0o100) === 0 ? 0o644 : 0o755;
  return { path: name, kind: "file", mode, size: stat.size, sha256: await digestOfFile(file) };
}

/** Where each hidden file is, by its inode and, when it is long enough to tell, by its content. */
async function withheldFiles(task: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const folder of WITHHELD) {
    if (lstatSync(path.join(task, folder), { throwIfNoEntry: false })?.isDirectory() !== true) continue;
    for (const { name, stat } of below(path.join(task, folder))) {
      if (!stat.isFile()) continue;
      found.set(identity(stat), `${folder}/${name}`);
      if (stat.size >= MIN_TELLING_BYTES)
        found.set(await digestOfFile(path.join(task, folder, name)), `${folder}/${name}`);
    }
  }
  return found;
}

function isTelling({ kind, size }: ContextEntry): boolean {
  return kind === "file" && size >= MIN_TELLING_BYTES;
}

function identity({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

/** Everything below, parents first, in the order of names. */
function* below(
  directory: string,
  passedOver: readonly string[] = [],
  inside = "",
): Generator<{ name: string; stat: Stats }> {
  for (const leaf of readdirSync(path.join(directory, inside)).sort()) {
    const name = inside === "" ? leaf : `${inside}/${leaf}`;
    if (passedOver.includes(name)) continue;
    const stat = lstatSync(path.join(directory, name));
    yield { name, stat };
    if (stat.isDirectory()) yield* below(directory, passedOver, name);
  }
}

/** Undefined where there is no such plain file. */
function textOf(directory: string, name: string): string | undefined {
  const file = path.join(directory, name);
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  return readFileSync(file, { encoding: "utf8", flag: constants.O_RDONLY | constants.O_NOFOLLOW });
}

async function digestOfFile(file: string): Promise<string> {
  const handle = await openPlain(file);
  const hash = createHash("sha256");
  try {
    for await (const chunk of handle.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
  } finally {
    await handle.close();
  }
  return hash.digest("hex");
}

function openPlain(file: string): Promise<FileHandle> {
  return open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function refused(place: string, why: string, fix?: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TASK_BUILD",
    message: `${place}: ${why}.`,
    ...(fix === undefined ? {} : { fix }),
    detail: { field: place },
  });
}
