/**
 * Owns failures printed as numbered blocks, `  1) suite` … `Error: …`: the text between the number and the error,
 * white space made single spaces.
 */
const NUMBER = /^\s{2,}\d+\)(.*)$/;
/** A block without an error by then is no failure. */
const MAX_BLOCK_LINES = 200;

export class NumberedFailures {
  readonly #onFailure: (text: string) => void;
  readonly #cut: "line" | "error";
  #lines: string[] | undefined;

  /** @param cut whether a name ends before the line that has the error, or at the word `Error:` in it */
  constructor(onFailure: (text: string) => void, cut: "line" | "error") {
    this.#onFailure = onFailure;
    this.#cut = cut;
  }

  line(line: string): void {
    const start = NUMBER.exec(line);
    if (start !== null) this.#lines = [];
    if (this.#lines === undefined) return;
    const text = start === null ? line : start[1]!;
    const error = text.indexOf(this.#cut === "line" ? "Error" : "Error:");
    if (error < 0) {
      this.#lines.push(text);
      if (this.#lines.length > MAX_BLOCK_LINES) this.#lines = undefined;
      return;
    }
    if (this.#cut === "error") this.#lines.push(text.slice(0, error));
    this.#onFailure(this.#lines.join(" ").replace(/\s+/g, " ").trim());
    this.#lines = undefined;
  }
}
