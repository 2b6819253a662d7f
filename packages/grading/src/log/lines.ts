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

  /** @param onBlock gets one or more whole lines; the last one of a log may lack its LF */
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
    if (end >= 0) this.#give(text.slice(0, end + 1));
    this.#rest = text.slice(end + 1) + held;
    if (this.#rest.length > MAX_LINE_CHARACTERS) this.#giveRest();
  }

  end(): void {
    if (this.#rest !== "") this.#giveRest();
  }

  #giveRest(): void {
    const text = this.#rest.replace(/\r\n?/g, "\n");
    this.#rest = "";
    this.#give(text);
  }

  #give(text: string): void {
    this.#onBlock(text.includes("\u001b") ? text.replace(ESCAPES, "") : text);
  }
}

const SPACE = " ".charCodeAt(0);
const TAB = "\t".charCodeAt(0);

/** Where the blanks from a place on end. */
export function firstInk(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code === SPACE || code === TAB) code = text.charCodeAt(++at);
  return at;
}

/** A set of characters asked once a line: a table for the first 128 codes, a set for the others. */
export class FirstCharacters {
  readonly #table = new Uint8Array(128);
  readonly #others = new Set<number>();

  /** @param codes UTF-16 code units */
  constructor(codes: Iterable<number>) {
    for (const code of codes)
      if (code < 128) this.#table[code] = 1;
      else this.#others.add(code);
  }

  has(code: number): boolean {
    return code < 128 ? this.#table[code] === 1 : this.#others.has(code);
  }
}

/**
 * Calls back with the lines of a text.
 * @param starts only lines whose first character, blanks aside, is one of these; the others cost no copy
 */
export function forEachLine(
  text: string,
  onLine: (line: string) => void,
  starts?: FirstCharacters | undefined,
): void {
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf("\n", start);
    const end = found < 0 ? text.length : found;
    if (starts === undefined || starts.has(text.charCodeAt(firstInk(text, start))))
      onLine(text.slice(start, end));
    start = end + 1;
  }
}
