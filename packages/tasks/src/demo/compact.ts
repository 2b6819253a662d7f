/**
 * Owns the canonical spacing of code in prompts and edits: no white space except between two words, no comment.
 * The mini harness applies the same rule when it shows a function, so a prompt computed here is the prompt sent.
 * Does not change the meaning of code and is never written back to a file.
 */
import { type Token, tokenizer } from "acorn";

const WORD_END = /[\w$]$/;
const WORD_START = /^[\w$]/;

/** `let s = 0;` becomes `let s=0;`. The text must be made of complete JavaScript tokens. */
export function compact(source: string): string {
  let text = "";
  for (const token of tokenizer(source, { ecmaVersion: "latest" }) as Iterable<Token>) {
    const piece = source.slice(token.start, token.end);
    text += WORD_END.test(text) && WORD_START.test(piece) ? ` ${piece}` : piece;
  }
  return text;
}
