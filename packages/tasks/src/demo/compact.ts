/**
 * Owns the canonical spacing of code in prompts and edits: no comment, and white space only where two words or
 * two equal signs would run together. The mini harness shows functions by the same rule, so a prompt computed
 * here is the prompt sent. Does not change the meaning of code and is never written back to a file.
 */
import { type Token, tokenizer } from "acorn";

const RUNS_TOGETHER = /^(?:[\w$]{2}|\+\+|--|\/\/)$/;

/** `let s = 0;` becomes `let s=0;`. The text must be made of complete JavaScript tokens. */
export function compact(source: string): string {
  let text = "";
  let end = 0;
  for (const token of tokenizer(source, { ecmaVersion: "latest" }) as Iterable<Token>) {
    const piece = source.slice(token.start, token.end);
    const isApart = token.start > end && text !== "";
    text += isApart && RUNS_TOGETHER.test(text.slice(-1) + piece.charAt(0)) ? ` ${piece}` : piece;
    end = token.end;
  }
  return text;
}
