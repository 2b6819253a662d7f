/**
 * Owns searching one content whatever it is packed in: plain, compressed, archives in archives, packs of git. What
 * comes out of a decoder is searched as it comes; only a zip inside something else is held whole.
 */
import { ByteSource } from "../../images/archive/byte-source.js";
import { TarReader } from "../../images/archive/tar-reader.js";
import type { SearchLimits } from "../types.js";
import {
  decoded,
  decodedWhole,
  HEAD_BYTES,
  NoDecoder,
  type PackedKind,
  packedKind,
  SMALL_BYTES,
} from "./content-kind.js";
import { beginning, chunksOf } from "./file-scan.js";
import type { Findings } from "./findings.js";
import type { Matcher } from "./matcher.js";
import type { ObjectSearch } from "./object-search.js";
import { zipMembers } from "./zip.js";

/** Zips are read from their end. One inside another archive is kept in memory for that. */
const MAX_INNER_ZIP_BYTES = 512 * 1024 * 1024;

/** A zip up to here is read at once: members are many, and each would be waited for. */
const MAX_READ_ZIP_BYTES = 64 * 1024 * 1024;

class OverLimit extends Error {}

interface Nesting {
  readonly depth: number;
  /** Bytes that may still come out of this file. */
  readonly budget: { left: number };
}

export class ContentSearch {
  readonly #matcher: Matcher;
  readonly #findings: Findings;
  readonly #limits: SearchLimits;
  readonly #objects: ObjectSearch;

  constructor(matcher: Matcher, findings: Findings, limits: SearchLimits, objects: ObjectSearch) {
    this.#matcher = matcher;
    this.#findings = findings;
    this.#limits = limits;
    this.#objects = objects;
  }

  /** Searches what is inside a packed file, which stays open. Its own bytes are the caller's. */
  async inside(path: string, fd: number, size: number, kind: PackedKind): Promise<void> {
    const nesting = { depth: 1, budget: { left: this.#limits.decompressedBytes } };
    await this.#guarded(path, kind, async () => {
      if (kind === "zip")
        await this.#zip(path, size <= MAX_READ_ZIP_BYTES ? beginning(fd, size) : fd, nesting);
      else if (size <= SMALL_BYTES) await this.#unpackWhole(path, kind, beginning(fd, size), nesting);
      else await this.#unpack(path, kind, chunksOf(fd), nesting);
    });
  }

  async #unpackWhole(path: string, kind: PackedKind, bytes: Buffer, nesting: Nesting): Promise<void> {
    if (nesting.depth > this.#limits.depth) throw new OverLimit();
    const content = decodedWhole(kind, bytes);
    if (content === undefined) await this.#unpack(path, kind, once(bytes), nesting);
    else await this.#whole(`${path}!`, content, nesting);
  }

  /** As `#content`, of bytes in hand. */
  async #whole(path: string, bytes: Buffer, nesting: Nesting): Promise<void> {
    this.#count(bytes, nesting);
    this.#matcher.scan(bytes, bytes.byteLength, (probe) => this.#findings.hit("compressed", path, probe));
    const kind = packedKind(bytes.subarray(0, HEAD_BYTES));
    if (kind !== undefined)
      await this.#guarded(path, kind, () =>
        this.#unpackWhole(path, kind, bytes, { ...nesting, depth: nesting.depth + 1 }),
      );
  }

  async #unpack(
    path: string,
    kind: PackedKind,
    chunks: AsyncIterable<Uint8Array>,
    nesting: Nesting,
  ): Promise<void> {
    if (nesting.depth > this.#limits.depth) throw new OverLimit();
    if (kind === "tar") await this.#tar(path, chunks, nesting);
    else if (kind === "zip") await this.#zip(path, await inMemory(chunks), nesting);
    else if (kind === "pack" || kind === "bundle") await this.#objects.pack(path, chunks, kind === "bundle");
    else await this.#content(`${path}!`, decoded(kind, chunks), nesting);
  }

  /** Searches bytes that came out of something, and what they are packed in themselves. */
  async #content(path: string, chunks: AsyncIterable<Uint8Array>, nesting: Nesting): Promise<void> {
    const searched = this.#searched(path, chunks, nesting);
    const head = await headOf(searched);
    const kind = packedKind(head);
    if (kind !== undefined)
      await this.#guarded(path, kind, () =>
        this.#unpack(path, kind, prepended(head, searched), { ...nesting, depth: nesting.depth + 1 }),
      );
    // What the reader of the format left is searched too, and damage further on is noticed.
    while ((await searched.next()).done !== true);
  }

  async #tar(path: string, chunks: AsyncIterable<Uint8Array>, nesting: Nesting): Promise<void> {
    const reader = new TarReader(new ByteSource(chunks));
    for (let entry = await reader.next(); entry !== undefined; entry = await reader.next()) {
      if (entry.kind !== "file") continue;
      // The members were searched with the archive; only what is packed in them was not.
      const content = membersContent(reader);
      const head = await headOf(content);
      const kind = packedKind(head);
      const name = `${path}${path.endsWith("!") ? "" : "!"}${entry.name}`;
      if (kind !== undefined)
        await this.#guarded(name, kind, () =>
          this.#unpack(name, kind, prepended(head, content), { ...nesting, depth: nesting.depth + 1 }),
        );
    }
  }

  async #zip(path: string, source: number | Buffer, nesting: Nesting): Promise<void> {
    for await (const member of zipMembers(source)) {
      if (member.name.endsWith("/")) continue;
      const name = `${path}!${member.name}`;
      if (member.isEncrypted) this.#findings.gap(name, "encrypted");
      else
        await this.#guarded(name, "zip", async () => {
          const whole = await member.whole();
          if (whole === undefined) await this.#content(name, await member.open(), nesting);
          else await this.#whole(name, whole, nesting);
        });
    }
  }

  /** Passes chunks on, searched and counted. */
  async *#searched(
    path: string,
    chunks: AsyncIterable<Uint8Array>,
    nesting: Nesting,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const scan = this.#matcher.stream((probe) => this.#findings.hit("compressed", path, probe));
    for await (const chunk of chunks) {
      this.#count(chunk, nesting);
      scan(chunk);
      yield chunk;
    }
  }

  #count({ byteLength }: Uint8Array, { budget }: Nesting): void {
    budget.left -= byteLength;
    if (budget.left < 0) throw new OverLimit();
    this.#findings.decompressedBytes += byteLength;
  }

  /** Content that cannot be read becomes a gap. Two bytes make a zlib stream: damage there only means that it is none. */
  async #guarded(path: string, kind: PackedKind, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof OverLimit) this.#findings.gap(path, "over-limit");
      else if (error instanceof NoDecoder) this.#findings.gap(path, "no-decoder");
      else if (kind !== "zlib") this.#findings.gap(path, "damaged");
    }
  }
}

async function inMemory(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.byteLength;
    if (length > MAX_INNER_ZIP_BYTES) throw new OverLimit();
    parts.push(chunk);
  }
  return Buffer.concat(parts);
}

async function* once(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** The first bytes, or fewer where they end; what was taken is to be put back with `prepended`. */
async function headOf(chunks: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  while (length < HEAD_BYTES) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    parts.push(value);
    length += value.byteLength;
  }
  return Buffer.concat(parts);
}

/** By hand, because leaving a `for await` would end the chunks for whoever reads on. */
function prepended(head: Buffer, chunks: AsyncGenerator<Uint8Array>): AsyncIterable<Uint8Array> {
  let isFirst = true;
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    if (!isFirst || head.byteLength === 0) return chunks.next();
    isFirst = false;
    return { done: false, value: head };
  };
  return { [Symbol.asyncIterator]: () => ({ next }) };
}

async function* membersContent(reader: TarReader): AsyncGenerator<Uint8Array> {
  for (let chunk = await reader.content(); chunk !== undefined; chunk = await reader.content()) yield chunk;
}
