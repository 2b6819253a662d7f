/**
 * Owns turning a log's bytes into text: pieces cut anywhere in, text of whole lines out. Bytes that are no UTF-8
 * become replacement characters. Decoding whole lines at once is several times faster than decoding a stream.
 */
const LINE_FEED = 0x0a;
/** Bytes kept for the end of a line; a longer line is decoded in pieces, a character at a cut being lost. */
const MAX_HELD_BYTES = 1_048_576;

export class LogBytes {
  readonly #onText: (text: string) => void;
  // A mark at the start is a character like any other, here as in the middle.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #held: Uint8Array = new Uint8Array();

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  write(bytes: Uint8Array): void {
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) this.#give(joined(this.#held, bytes.subarray(0, end)));
    this.#held = end > 0 ? bytes.slice(end) : joined(this.#held, bytes);
    if (this.#held.length > MAX_HELD_BYTES) this.end();
  }

  end(): void {
    if (this.#held.length > 0) this.#give(this.#held);
  }

  #give(bytes: Uint8Array): void {
    this.#held = new Uint8Array();
    this.#onText(this.#decoder.decode(bytes));
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.length === 0) return b;
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
