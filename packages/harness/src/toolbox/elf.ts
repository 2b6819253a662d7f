/**
 * Owns reading what an ELF program needs to start (its loader, its glibc) and making a copy of it start with a
 * loader and libraries of our own. 64-bit little-endian only, as all supported hosts are.
 * Does not find libraries (libraries.ts). Layout: System V ABI, generic part, and the GNU symbol versions.
 */
import { closeSync, fstatSync, openSync, readSync, writeSync } from "node:fs";

const MAGIC = 0x7f454c46;
const CLASS_64 = 2;
const LITTLE_ENDIAN = 1;
const HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const PT = { load: 1, dynamic: 2, interpreter: 3 } as const;
const DYNAMIC_ENTRY_BYTES = 16;
const DT = {
  null: 0n,
  needed: 1n,
  strings: 5n,
  rpath: 15n,
  debug: 21n,
  runpath: 29n,
  versionNeeds: 0x6ffffffen,
  nVersionNeeds: 0x6fffffffn,
} as const;
const VERSION_NEED_BYTES = 16;
/** Far above any real table; a damaged file must not make us read for ever. */
const MAX_STRING_BYTES = 4096;
const MAX_ENTRIES = 4096;

export type Version = readonly [major: number, minor: number];

/** What a program needs before its first instruction. */
export interface ElfNeeds {
  /** Absolute path of its loader; undefined when it needs none. */
  readonly loader: string | undefined;
  /** Newest glibc whose symbols it names; undefined when it names none. */
  readonly glibc: Version | undefined;
  /** Shared libraries it asks for by name, the loader's own among them. */
  readonly libraries: readonly string[];
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
}

interface DynamicEntry {
  readonly tag: bigint;
  readonly value: bigint;
  /** Where the entry lies in the file. */
  readonly offset: number;
}

/** Undefined when the file is no ELF program of the supported kind, for example a script. */
export function elfNeeds(file: string): ElfNeeds | undefined {
  return withFile(file, "r", (elf) =>
    elf === undefined
      ? undefined
      : { loader: elf.loader(), glibc: elf.newestGlibc(), libraries: elf.libraries() },
  );
}

/**
 * Rewrites a program in place so that the kernel starts it with `loader` and all its libraries come from
 * `libraries` before anywhere else. Both names go where the old loader's stood: what needs more room is refused.
 * Size, layout and all other bytes stay.
 * @throws Error when the program has no loader, too little room, or no entry to spare
 */
export function startWithOwnLibraries(file: string, loader: string, libraries: string): void {
  withFile(file, "r+", (elf) => {
    if (elf === undefined) throw new Error(`${file} is no 64-bit ELF program`);
    elf.replaceLoader(loader, libraries);
  });
}

/**
 * Rewrites a shared library in place so that what it needs is looked for where the program that loads it looks, after
 * its own places. A list of the newer kind (DT_RUNPATH) hides the program's.
 */
export function searchAsItsProgram(file: string): void {
  withFile(file, "r+", (elf) => elf?.demoteRunpath());
}

function withFile<T>(file: string, mode: "r" | "r+", use: (elf: ElfFile | undefined) => T): T {
  const fd = openSync(file, mode);
  try {
    return use(ElfFile.open(fd, file));
  } finally {
    closeSync(fd);
  }
}

class ElfFile {
  readonly #fd: number;
  readonly #name: string;
  readonly #segments: readonly Segment[];

  private constructor(fd: number, name: string, segments: readonly Segment[]) {
    this.#fd = fd;
    this.#name = name;
    this.#segments = segments;
  }

  static open(fd: number, name: string): ElfFile | undefined {
    if (fstatSync(fd).size < HEADER_BYTES) return undefined;
    const header = read(fd, 0, HEADER_BYTES);
    const isSupported =
      header.readUInt32BE(0) === MAGIC && header[4] === CLASS_64 && header[5] === LITTLE_ENDIAN;
    if (!isSupported) return undefined;
    const table = read(
      fd,
      Number(header.readBigUInt64LE(32)),
      header.readUInt16LE(56) * PROGRAM_HEADER_BYTES,
    );
    const segments: Segment[] = [];
    for (let at = 0; at < table.byteLength; at += PROGRAM_HEADER_BYTES)
      segments.push({
        type: table.readUInt32LE(at),
        offset: Number(table.readBigUInt64LE(at + 8)),
        address: Number(table.readBigUInt64LE(at + 16)),
        fileBytes: Number(table.readBigUInt64LE(at + 32)),
      });
    return new ElfFile(fd, name, segments);
  }

  loader(): string | undefined {
    const segment = this.#segment(PT.interpreter);
    return segment && text(read(this.#fd, segment.offset, segment.fileBytes), 0);
  }

  libraries(): string[] {
    const dynamic = this.#dynamic();
    const strings = dynamic.find(({ tag }) => tag === DT.strings)?.value;
    if (strings === undefined) return [];
    const from = this.#at(strings);
    return dynamic
      .filter(({ tag }) => tag === DT.needed)
      .map(({ value }) => text(read(this.#fd, from + Number(value), MAX_STRING_BYTES), 0));
  }

  newestGlibc(): Version | undefined {
    const dynamic = this.#dynamic();
    const addressOf = (tag: bigint) => dynamic.find((entry) => entry.tag === tag)?.value;
    const [needs, nNeeds, strings] = [DT.versionNeeds, DT.nVersionNeeds, DT.strings].map(addressOf);
    if (needs === undefined || nNeeds === undefined || strings === undefined) return undefined;
    const versions = this.#versionNames(this.#at(needs), Number(nNeeds), this.#at(strings)).flatMap(
      glibcVersion,
    );
    return versions.sort(compareVersions).at(-1);
  }

  replaceLoader(loader: string, libraries: string): void {
    const segment = this.#segment(PT.interpreter);
    if (segment === undefined) throw new Error(`${this.#name} names no loader`);
    const names = Buffer.from(`${loader}\0${libraries}\0`);
    if (names.byteLength > segment.fileBytes)
      throw new Error(`${this.#name} has ${segment.fileBytes} bytes for its loader's name`);
    const dynamic = this.#dynamic();
    const strings = dynamic.find(({ tag }) => tag === DT.strings)?.value;
    const spare = spareEntry(dynamic);
    if (strings === undefined || spare === undefined)
      throw new Error(`${this.#name} has no entry to spare for its libraries`);
    const entry = Buffer.alloc(DYNAMIC_ENTRY_BYTES);
    entry.writeBigUInt64LE(DT.rpath, 0);
    // Counted from the string table, as the loader does; it may be before it.
    const distance = BigInt(segment.address + loader.length + 1) - strings;
    entry.writeBigUInt64LE(BigInt.asUintN(64, distance), 8);
    writeSync(
      this.#fd,
      Buffer.concat([names, Buffer.alloc(segment.fileBytes - names.byteLength)]),
      0,
      segment.fileBytes,
      segment.offset,
    );
    writeSync(this.#fd, entry, 0, DYNAMIC_ENTRY_BYTES, spare.offset);
  }

  demoteRunpath(): void {
    const runpath = this.#dynamic().find(({ tag }) => tag === DT.runpath);
    if (runpath === undefined) return;
    const tag = Buffer.alloc(8);
    tag.writeBigUInt64LE(DT.rpath);
    writeSync(this.#fd, tag, 0, 8, runpath.offset);
  }

  #segment(type: number): Segment | undefined {
    return this.#segments.find((segment) => segment.type === type);
  }

  /** Entries up to and with the first that ends the table, and those behind it. */
  #dynamic(): DynamicEntry[] {
    const segment = this.#segment(PT.dynamic);
    if (segment === undefined) return [];
    const bytes = read(this.#fd, segment.offset, segment.fileBytes);
    const entries: DynamicEntry[] = [];
    for (let at = 0; at + DYNAMIC_ENTRY_BYTES <= bytes.byteLength; at += DYNAMIC_ENTRY_BYTES)
      entries.push({
        tag: bytes.readBigUInt64LE(at),
        value: bytes.readBigUInt64LE(at + 8),
        offset: segment.offset + at,
      });
    return entries;
  }

  #versionNames(offset: number, nNeeds: number, strings: number): string[] {
    const names: string[] = [];
    let need = offset;
    for (let n = 0; n < Math.min(nNeeds, MAX_ENTRIES); n++) {
      const header = read(this.#fd, need, VERSION_NEED_BYTES);
      let name = need + header.readUInt32LE(8);
      for (let i = 0; i < header.readUInt16LE(2); i++) {
        const aux = read(this.#fd, name, VERSION_NEED_BYTES);
        names.push(text(read(this.#fd, strings + aux.readUInt32LE(8), MAX_STRING_BYTES), 0));
        name += aux.readUInt32LE(12);
      }
      need += header.readUInt32LE(12);
    }
    return names;
  }

  /** Where an address lies in the file. */
  #at(address: bigint): number {
    const wanted = Number(address);
    const segment = this.#segments.find(
      ({ type, address: from, fileBytes }) => type === PT.load && wanted >= from && wanted < from + fileBytes,
    );
    if (segment === undefined) throw new Error(`${this.#name}: address ${wanted} is in no segment`);
    return segment.offset + wanted - segment.address;
  }
}

/** A list of libraries it has already, else the debugger's own entry, else one behind the end of the table. */
function spareEntry(dynamic: readonly DynamicEntry[]): DynamicEntry | undefined {
  const end = dynamic.findIndex(({ tag }) => tag === DT.null);
  const live = dynamic.slice(0, end);
  const named = (tag: bigint) => live.find((entry) => entry.tag === tag);
  return named(DT.runpath) ?? named(DT.rpath) ?? named(DT.debug) ?? (dynamic[end + 1] && dynamic[end]);
}

function read(fd: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  return buffer.subarray(0, readSync(fd, buffer, 0, bytes, offset));
}

function text(bytes: Buffer, from: number): string {
  const end = bytes.indexOf(0, from);
  return bytes.toString("latin1", from, end < 0 ? undefined : end);
}

/** `GLIBC_2.34`; names like GLIBC_PRIVATE say nothing of a version. */
function glibcVersion(name: string): Version[] {
  const [, major, minor] = /^GLIBC_(\d+)\.(\d+)/.exec(name) ?? [];
  return major === undefined ? [] : [[Number(major), Number(minor)]];
}

export function compareVersions(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1];
}
