/**
 * Owns finding many byte strings in a stream at once. Does not know what they mean.
 *
 * The method is that of Wu and Manber (1994, "A fast algorithm for multi-pattern searching"): the last three bytes of
 * a window as long as the shortest pattern are hashed, and a table says how far the window can move; only where it
 * says 0 are patterns compared. The work per byte falls with the length of the shortest pattern.
 */
const BLOCK_BYTES = 3;
const TABLE_BITS = 15;
const MASK = (1 << TABLE_BITS) - 1;
/** A longer window would not move faster: the table has one byte an entry, and patterns share few blocks. */
const MAX_WINDOW = 32;

export interface Pattern {
  readonly id: string;
  /** At least `MIN_PATTERN_BYTES`. */
  readonly bytes: Buffer;
}

export const MIN_PATTERN_BYTES = 6;

export class Matcher {
  readonly #patterns: readonly Pattern[];
  readonly #window: number;
  readonly #shift: Uint8Array;
  readonly #buckets = new Map<number, Pattern[]>();
  /** What a match may have before the present chunk. */
  readonly overlap: number;

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns;
    const lengths = patterns.map(({ bytes }) => bytes.byteLength);
    if (lengths.some((length) => length < MIN_PATTERN_BYTES))
      throw new RangeError(`a pattern is shorter than ${MIN_PATTERN_BYTES} bytes`);
    const window = Math.min(MAX_WINDOW, ...lengths);
    this.#window = window;
    this.overlap = Math.max(1, ...lengths) - 1;
    this.#shift = new Uint8Array(1 << TABLE_BITS).fill(window - BLOCK_BYTES + 1);
    for (const pattern of patterns) {
      for (let end = BLOCK_BYTES - 1; end < window; end++) {
        const key = hash(pattern.bytes, end);
        this.#shift[key] = Math.min(this.#shift[key]!, window - 1 - end);
      }
      const last = hash(pattern.bytes, window - 1);
      this.#buckets.set(last, [...(this.#buckets.get(last) ?? []), pattern]);
    }
  }

  get isEmpty(): boolean {
    return this.#patterns.length === 0;
  }

  /** Calls `onMatch` with the id of each pattern, as often as it stands in `buffer` up to `length`. */
  scan(buffer: Buffer, length: number, onMatch: (id: string) => void): void {
    if (this.isEmpty) return;
    const shift = this.#shift;
    const window = this.#window;
    let end = window - 1;
    while (end < length) {
      const step = shift[((buffer[end - 2]! << 10) ^ (buffer[end - 1]! << 5) ^ buffer[end]!) & MASK]!;
      if (step > 0) {
        end += step;
        continue;
      }
      const start = end - window + 1;
      for (const { id, bytes } of this.#buckets.get(hash(buffer, end)) ?? [])
        if (start + bytes.byteLength <= length && isAt(buffer, start, bytes)) onMatch(id);
      end += 1;
    }
  }

  /** For a stream: give it chunk after chunk; a match may span any number of them. */
  stream(onMatch: (id: string) => void): (chunk: Uint8Array) => void {
    let tail = Buffer.alloc(0);
    return (chunk) => {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      // What begins before the chunk ends at most `overlap` bytes into it. Matches in the tail alone are told twice.
      const seam = Buffer.concat([tail, bytes.subarray(0, this.overlap)]);
      if (tail.byteLength > 0) this.scan(seam, seam.byteLength, onMatch);
      this.scan(bytes, bytes.byteLength, onMatch);
      const rest = bytes.byteLength < this.overlap ? seam : bytes;
      tail = Buffer.from(rest.subarray(Math.max(0, rest.byteLength - this.overlap)));
    };
  }
}

function hash(bytes: Buffer, end: number): number {
  return ((bytes[end - 2]! << 10) ^ (bytes[end - 1]! << 5) ^ bytes[end]!) & MASK;
}

function isAt(buffer: Buffer, start: number, bytes: Buffer): boolean {
  for (let i = 0; i < bytes.byteLength; i++) if (buffer[start + i] !== bytes[i]) return false;
  return true;
}
