/** Owns a block of lines on a terminal that is redrawn in place, with notes above it. Knows nothing of what they say. */
export class TerminalBlock {
  readonly #out: NodeJS.WriteStream;
  #drawn: readonly string[] = [];

  constructor(out: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
  }

  note(line: string): void {
    const block = this.#drawn;
    this.#erase();
    this.#out.write(`${line}\n`);
    this.#draw(block);
  }

  show(lines: readonly string[]): void {
    this.#erase();
    this.#draw(lines);
  }

  /** Leaves what is shown and stops drawing. */
  end(): void {
    this.#drawn = [];
  }

  #erase(): void {
    if (this.#drawn.length > 0) this.#out.write(`\x1b[${this.#drawn.length}A\x1b[0J`);
  }

  /** A line that wrapped would be two rows, and the next redraw would be one short. */
  #draw(lines: readonly string[]): void {
    const width = this.#out.columns || 80;
    this.#drawn = lines;
    for (const line of lines)
      this.#out.write(`${line.length < width ? line : `${line.slice(0, width - 2)}…`}\n`);
  }
}

/** 192000 → "3:12". */
export function elapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
