/**
 * Owns reading members of a saved image: from a directory, or from an uncompressed tar without unpacking it.
 * Names are looked up as they are; none leads outside.
 */
import { constants, createReadStream, lstatSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { TarReader } from "../archive/tar-reader.js";
import type { OpenBlob } from "../source.js";
import { FileBytes } from "./file-bytes.js";

export interface LocalFiles {
  /** Undefined when there is no such member. */
  read(name: string): Promise<Buffer | undefined>;
  open(name: string): OpenBlob | undefined;
}

const CHUNK_BYTES = 256 * 1024;
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;
const MAX_LINKS = 8;

export function openLocalFiles(place: string): Promise<LocalFiles> {
  const stat = lstatSync(place, { throwIfNoEntry: false });
  if (stat === undefined)
    throw new MortiseError({ code: "MORTISE_SANDBOX_IMAGE_UNKNOWN", message: `${place} does not exist.` });
  return stat.isDirectory() ? Promise.resolve(new DirectoryFiles(place)) : indexArchive(place);
}

class DirectoryFiles implements LocalFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async read(name: string): Promise<Buffer | undefined> {
    const file = this.#file(name);
    return file === undefined
      ? undefined
      : readFile(file, { flag: constants.O_RDONLY | constants.O_NOFOLLOW });
  }

  open(name: string): OpenBlob | undefined {
    const file = this.#file(name);
    if (file === undefined) return undefined;
    return (signal) => createReadStream(file, { highWaterMark: CHUNK_BYTES, signal });
  }

  #file(name: string): string | undefined {
    if (name.split("/").includes("..")) return undefined;
    const file = path.join(this.#directory, name);
    return lstatSync(file, { throwIfNoEntry: false })?.isFile() ? file : undefined;
  }
}

interface Member {
  readonly offset: number;
  readonly size: number;
}

class ArchiveFiles implements LocalFiles {
  readonly #file: string;
  readonly #members: ReadonlyMap<string, Member>;
  /** `docker save` stores equal layers once and links the others to it. */
  readonly #links: ReadonlyMap<string, string>;

  constructor(file: string, members: ReadonlyMap<string, Member>, links: ReadonlyMap<string, string>) {
    this.#file = file;
    this.#members = members;
    this.#links = links;
  }

  async read(name: string): Promise<Buffer | undefined> {
    const member = this.#member(name);
    if (member === undefined) return undefined;
    if (member.size > MAX_DOCUMENT_BYTES)
      throw new MortiseError({
        code: "MORTISE_SANDBOX_IMAGE_OVER_LIMIT",
        message: `${name} has over ${MAX_DOCUMENT_BYTES} bytes.`,
      });
    const handle = await open(this.#file);
    try {
      const bytes = Buffer.alloc(member.size);
      await handle.read(bytes, 0, member.size, member.offset);
      return bytes;
    } finally {
      await handle.close();
    }
  }

  open(name: string): OpenBlob | undefined {
    const member = this.#member(name);
    if (member === undefined) return undefined;
    const { offset, size } = member;
    return (signal) => {
      const range = { start: offset, end: offset + size - 1, highWaterMark: CHUNK_BYTES };
      return size === 0 ? emptyBlob() : createReadStream(this.#file, { ...range, signal });
    };
  }

  #member(name: string): Member | undefined {
    let at = path.posix.normalize(name);
    for (let n = 0; n < MAX_LINKS; n++) {
      const target = this.#links.get(at);
      if (target === undefined) return this.#members.get(at);
      at = path.posix.join(path.posix.dirname(at), target);
    }
    return undefined;
  }
}

async function* emptyBlob(): AsyncGenerator<Uint8Array> {}

/** One pass over the headers; contents are read later, where they lie. */
async function indexArchive(file: string): Promise<LocalFiles> {
  const handle = await open(file);
  const members = new Map<string, Member>();
  const links = new Map<string, string>();
  try {
    const bytes = new FileBytes(handle);
    const archive = new TarReader(bytes);
    for (let entry = await archive.next(); entry !== undefined; entry = await archive.next()) {
      const name = path.posix.normalize(Buffer.from(entry.name, "latin1").toString());
      const target = Buffer.from(entry.target, "latin1").toString();
      if (entry.kind === "symlink") links.set(name, target);
      else if (entry.kind === "hardlink")
        links.set(name, path.posix.relative(path.posix.dirname(name), target));
      else if (entry.kind === "file") members.set(name, { offset: bytes.position, size: entry.size });
    }
  } catch (error) {
    throw new MortiseError({
      code: "MORTISE_SANDBOX_IMAGE_INVALID",
      message: `${file} is no tar archive of an image: ${(error as Error).message}`,
      fix: "Give an OCI layout directory or an uncompressed archive as `docker save` writes it.",
      cause: error,
    });
  } finally {
    await handle.close();
  }
  return new ArchiveFiles(file, members, links);
}
