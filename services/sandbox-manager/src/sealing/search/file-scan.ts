/**
 * Owns reading the bytes of one file for a matcher: whole, in large pieces, over holes. Does not look inside formats.
 */
import { readSync, type Stats } from "node:fs";
import { nextData, nextHole } from "../../images/layer/linux.js";
import { HEAD_BYTES } from "./content-kind.js";
import type { Matcher } from "./matcher.js";

const CHUNK_BYTES = 1024 * 1024;
const SECTOR_BYTES = 512;

export class FileScan {
  readonly #matcher: Matcher;
  /** Room for what a match may have before a chunk, and the chunk. */
  readonly #buffer: Buffer;

  constructor(matcher: Matcher) {
    this.#matcher = matcher;
    this.#buffer = Buffer.allocUnsafe(matcher.overlap + CHUNK_BYTES);
  }

  /** @returns the bytes read, and a copy of the first of them */
  scan(fd: number, stat: Stats, onMatch: (probe: string) => void): { nBytes: number; head: Buffer } {
    let nBytes = 0;
    let head = Buffer.alloc(0);
    for (const [start, end] of dataOf(fd, stat)) {
      let kept = 0;
      for (let at = start; at < end; ) {
        const n = readSync(fd, this.#buffer, kept, Math.min(CHUNK_BYTES, end - at), at);
        if (n === 0) break;
        if (at === 0) head = Buffer.from(this.#buffer.subarray(0, Math.min(n, HEAD_BYTES)));
        this.#matcher.scan(this.#buffer, kept + n, onMatch);
        const length = kept + n;
        kept = Math.min(this.#matcher.overlap, length);
        this.#buffer.copyWithin(0, length - kept, length);
        at += n;
        nBytes += n;
      }
    }
    return { nBytes, head };
  }
}

/** The parts of a file that are stored. A log of logins may be terabytes of nothing. */
function* dataOf(fd: number, stat: Stats): Generator<readonly [number, number]> {
  if (stat.blocks * SECTOR_BYTES >= stat.size || stat.size <= CHUNK_BYTES) {
    yield [0, stat.size];
    return;
  }
  for (let at = nextData(fd, 0); at !== undefined; ) {
    const end = nextHole(fd, at);
    yield [at, end];
    at = nextData(fd, end);
  }
}

/** Chunks of a file from its beginning, for decoders. */
export async function* chunksOf(fd: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES / 4);
    const n = readSync(fd, chunk, 0, chunk.byteLength, at);
    if (n === 0) return;
    at += n;
    yield chunk.subarray(0, n);
  }
}

/** The first `length` bytes of a file, or all of a shorter one. */
export function beginning(fd: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  return bytes.subarray(0, readSync(fd, bytes, 0, length, 0));
}
