/**
 * Owns cutting a log of any size into lines: chunks in, normalised text of whole lines out. Does not know
 * what a line means.
 *
 * Line ends are LF, CR LF and CR alone (progress bars), as text readers of most languages take them. Escape
 * sequences of terminals are removed. Memory is bounded: a line longer than the limit is given in pieces.
 */

/** Longest line kept together, characters; parametrised ids reach some ten thousand. */
const MAX_LINE_CHARACTERS = 1_048_576;

// CSI sequences, OSC sequences up to their terminator, and two-character escapes. The classes of each part
// are disjoint from what follows it, so a failed match costs one pass.
const ESCAPES =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[()][A-Za-z0-9]|[@-Z\\^_])/g;

export class LineBlocks {
  readonly #onBlock: (text: string) => void;
  #rest = "";

  /** @param onBlock gets one or more whole lines, joined by LF, without the last line's end */
  constructor(onBlock: (text: string) => void) {
    this.#onBlock = onBlock;
  }

  write(chunk: string): void {
    let text = this.#rest === "" ? chunk : this.#rest + chunk;
    // A CR at the very end may be half of a line end.
    const held = text.endsWith("\r") ? "\r" : "";
    if (held !== "") text = text.slice(0, -1);
    if (text.includes("\r")) text = text.replace(/\r\n?/g, "\n");
    const end = text.lastIndexOf("\n");
    if (end >= 0) this.#give(text.slice(0, end));
    this.#rest = text.slice(end + 1) + held;
    if (this.#rest.length > MAX_LINE_CHARACTERS) this.#giveRest();
  }

  end(): void {
    if (this.#rest !== "") this.#giveRest();
  }

  #giveRest(): void {
    const text = this.#rest.replace(/\r\n?/g, "\n");
    this.#rest = "";
    this.#give(text.endsWith("\n") ? text.slice(0, -1) : text);
  }

  #give(text: string): void {
    this.#onBlock(text.includes("\u001b") ? text.replace(ESCAPES, "") : text);
  }
}

/** Calls back with every line of a text. */
export function forEachLine(text: string, onLine: (line: string) => void): void {
  let start = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    if (end < 0) break;
    onLine(text.slice(start, end));
    start = end + 1;
  }
  onLine(start === 0 ? text : text.slice(start));
}
