/**
 * Owns tar archives as a sequence of members, read while the bytes arrive: long names and links (GNU, PAX),
 * large numbers, times with nanoseconds, extended attributes and sparse files. Nothing is lost of names and
 * values: they stay bytes. Does not touch the file system and does not judge names.
 */
import { layerRefused } from "../image-errors.js";
import type { Bytes } from "./byte-source.js";
import {
  lastOf,
  type PaxRecords,
  parseDecimal,
  parsePax,
  parseTimestamp,
  type Timestamp,
  XATTR_PREFIX,
} from "./pax.js";
import { readOldMap, readPaxMap, type Segment, type SparseMap, verifyMap } from "./sparse.js";
import { BLOCK_BYTES, isZeroBlock, parseHeader, type TarHeader } from "./tar-header.js";

export type TarKind = "file" | "hardlink" | "symlink" | "character" | "block" | "directory" | "fifo";

export interface TarEntry {
  readonly kind: TarKind;
  /** Byte string, as written. */
  readonly name: string;
  /** Byte string: where a link leads. */
  readonly target: string;
  /** Permissions with setuid, setgid and sticky bit. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtime: Timestamp;
  readonly major: number;
  readonly minor: number;
  /** Length of the file, holes included; 0 for everything else. */
  readonly size: number;
  /** Where the content belongs, in order. */
  readonly segments: readonly Segment[];
  readonly xattrs: ReadonlyMap<string, Buffer>;
}

const KINDS: Readonly<Record<string, TarKind>> = {
  "0": "file",
  "\0": "file",
  "1": "hardlink",
  "2": "symlink",
  "3": "character",
  "4": "block",
  "5": "directory",
  "6": "fifo",
  "7": "file",
  S: "file",
};

/** Long names and extended headers are held in memory. Linux allows 64 KiB a value, a name has 4 KiB. */
const MAX_EXTENSION_BYTES = 1024 * 1024;

/** What precedes a member and belongs to it. */
interface Extensions {
  longName?: string;
  longTarget?: string;
  records: PaxRecords;
}

export class TarReader {
  readonly #source: Bytes;
  #globals: PaxRecords = [];
  /** Content of the present member not read yet, and the padding after it. */
  #contentLeft = 0;
  #padding = 0;

  constructor(source: Bytes) {
    this.#source = source;
  }

  /** The next member, or undefined at the end. What was not read of the one before is skipped. */
  async next(): Promise<TarEntry | undefined> {
    await this.#skipContent();
    const extensions: Extensions = { records: [] };
    for (;;) {
      const block = await this.#source.take(BLOCK_BYTES);
      // An archive ends with two zero blocks; programs that leave them out are read all the same.
      if (block.byteLength === 0 || (block.byteLength === BLOCK_BYTES && isZeroBlock(block)))
        return undefined;
      if (block.byteLength < BLOCK_BYTES) throw layerRefused("the archive ends inside a header");
      const header = parseHeader(block);
      if (!(await this.#readExtension(header, extensions))) return this.#entry(header, block, extensions);
    }
  }

  /** Some bytes of the present member's content, or undefined when there are no more. */
  async content(): Promise<Buffer | undefined> {
    if (this.#contentLeft === 0) return undefined;
    const chunk = await this.#source.some(this.#contentLeft);
    if (chunk === undefined) throw layerRefused("the archive ends inside a file");
    this.#contentLeft -= chunk.byteLength;
    return chunk;
  }

  async #skipContent(): Promise<void> {
    const left = this.#contentLeft + this.#padding;
    if ((await this.#source.skip(left)) < left) throw layerRefused("the archive ends inside a file");
    this.#contentLeft = 0;
    this.#padding = 0;
  }

  /** False when the header is a member itself. */
  async #readExtension(header: TarHeader, extensions: Extensions): Promise<boolean> {
    switch (header.type) {
      case "L":
        extensions.longName = untilNul(await this.#extension(header));
        return true;
      case "K":
        extensions.longTarget = untilNul(await this.#extension(header));
        return true;
      case "x":
        extensions.records = parsePax(await this.#extension(header));
        return true;
      case "g":
        this.#globals = [...this.#globals, ...parsePax(await this.#extension(header))];
        if (this.#globals.length > MAX_EXTENSION_BYTES / BLOCK_BYTES)
          throw layerRefused("there are too many global headers");
        return true;
      default:
        return false;
    }
  }

  async #extension({ size }: TarHeader): Promise<Buffer> {
    if (size > MAX_EXTENSION_BYTES) throw layerRefused(`an extended header has ${size} bytes`);
    const bytes = await this.#source.take(size + padding(size));
    if (bytes.byteLength < size) throw layerRefused("the archive ends inside a header");
    return bytes.subarray(0, size);
  }

  async #entry(header: TarHeader, block: Buffer, extensions: Extensions): Promise<TarEntry> {
    const records = [...this.#globals, ...extensions.records];
    const pax = lastOf(records);
    const string = (key: string) => pax.get(key)?.toString("latin1");
    const name = string("GNU.sparse.name") ?? string("path") ?? extensions.longName ?? header.name;
    const known = KINDS[header.type];
    if (known === undefined) throw layerRefused(`its type ${JSON.stringify(header.type)} is unknown`, name);
    // Archives older than directories' own type mark them with a slash.
    const kind = known === "file" && name.endsWith("/") ? "directory" : known;
    const stored = pax.has("size") ? parseDecimal(pax.get("size")!, "size") : header.size;
    // Only files have content; some programs state a linked file's size in the link.
    const map = kind === "file" ? await this.#contentOf(header, block, records, stored) : undefined;
    const mtime = string("mtime");
    return {
      kind,
      name,
      target: string("linkpath") ?? extensions.longTarget ?? header.linkName,
      mode: header.mode,
      uid: owner(pax.has("uid") ? parseDecimal(pax.get("uid")!, "uid") : header.uid, name),
      gid: owner(pax.has("gid") ? parseDecimal(pax.get("gid")!, "gid") : header.gid, name),
      mtime: mtime === undefined ? { seconds: header.mtime, nanoseconds: 0 } : parseTimestamp(mtime),
      major: header.major,
      minor: header.minor,
      size: map?.realSize ?? 0,
      segments: map?.segments ?? [],
      xattrs: xattrsOf(pax),
    };
  }

  async #contentOf(
    header: TarHeader,
    block: Buffer,
    records: PaxRecords,
    stored: number,
  ): Promise<SparseMap> {
    const map =
      header.type === "S" ? await readOldMap(block, this.#source) : await readPaxMap(records, this.#source);
    this.#contentLeft = stored - (map?.mapBytes ?? 0);
    this.#padding = padding(stored);
    if (this.#contentLeft < 0) throw layerRefused("a sparse map is longer than its member");
    if (map !== undefined) verifyMap(map, this.#contentLeft);
    const segments = stored === 0 ? [] : [{ offset: 0, length: stored }];
    return map ?? { realSize: stored, segments, mapBytes: 0 };
  }
}

function xattrsOf(pax: ReadonlyMap<string, Buffer>): ReadonlyMap<string, Buffer> {
  const found = [...pax].filter(([key]) => key.startsWith(XATTR_PREFIX));
  return new Map(found.map(([key, value]) => [key.slice(XATTR_PREFIX.length), value]));
}

/** All ones would mean "leave as it is" to chown. */
function owner(id: number, name: string): number {
  if (id < 0 || id >= 0xffff_ffff) throw layerRefused(`its owner ${id} is no user or group number`, name);
  return id;
}

function untilNul(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString("latin1", 0, end < 0 ? bytes.byteLength : end);
}

function padding(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}
