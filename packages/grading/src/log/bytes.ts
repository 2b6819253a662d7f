/**
 * Owns turning a log's bytes into text: pieces cut anywhere in, text of whole lines out. Bytes that are no UTF-8
 * become replacement characters. Decoding whole lines at once is several times faster than decoding a stream.
 */
const LINE_FEED = 0x0a;
/** Bytes decoded at once. Strings beyond a hundred kilobytes have memory of their own, which costs several times more. */
const PIECE_BYTES = 65_536;
/** Bytes kept for the end of a line; a longer line is decoded in pieces, a character at a cut being lost. */
const MAX_HELD_BYTES = 1_048_576;

const NOTHING = new Uint8Array();

export class LogBytes {
  readonly #onText: (text: string) => void;
  // A mark at the start is a character like any other, here as in the middle.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #held: Uint8Array = NOTHING;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  write(bytes: Uint8Array): void {
    let from = this.#held.length > 0 ? this.#endHeld(bytes) : 0;
    while (from < bytes.length) {
      const end = endOfLines(bytes, from, from + PIECE_BYTES);
      if (end === 0) break;
      this.#give(bytes.subarray(from, end));
      from = end;
    }
    if (from < bytes.length) this.#hold(bytes.slice(from));
  }

  /** Completes the line begun by an earlier piece; returns where the next one starts. */
  #endHeld(bytes: Uint8Array): number {
    const end = bytes.indexOf(LINE_FEED) + 1;
    const held = joined(this.#held, end > 0 ? bytes.subarray(0, end) : bytes);
    if (end === 0) {
      this.#hold(held);
      return bytes.length;
    }
    this.#held = NOTHING;
    this.#give(held);
    return end;
  }

  #hold(bytes: Uint8Array): void {
    this.#held = bytes;
    if (bytes.length > MAX_HELD_BYTES) this.end();
  }

  end(): void {
    const held = this.#held;
    this.#held = NOTHING;
    if (held.length > 0) this.#give(held);
  }

  #give(bytes: Uint8Array): void {
    this.#onText(this.#decoder.decode(bytes));
  }
}

/** Behind the last line that ends before `limit`, or behind the first one that ends at all; 0 when none does. */
function endOfLines(bytes: Uint8Array, from: number, limit: number): number {
  const end = bytes.lastIndexOf(LINE_FEED, Math.min(limit, bytes.length) - 1) + 1;
  return end > from ? end : bytes.indexOf(LINE_FEED, limit) + 1;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
