/**
 * Owns the split of sampled ids into plain text and marks, while they arrive. A mark that is one token of the
 * vocabulary is recognised by its id and by nothing else: text that merely spells it stays text. A mark the
 * vocabulary lacks is recognised by its text; what could be the beginning of one is held back.
 */
import { DetokenizeStream, type Tokenizer } from "@mortise/policy";

export type Mark = "call-open" | "call-close" | "reasoning-open" | "reasoning-close";

/**
 * `text` of a mark is how it is spelled, for the case that it turns out to mean nothing; `isToken` tells whether
 * it was one id.
 */
export type Lexeme =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "mark"; readonly mark: Mark; readonly text: string; readonly isToken: boolean };

export class Lexer {
  private readonly detokenizer: DetokenizeStream;
  private readonly byId = new Map<number, Lexeme>();
  private readonly spelled: { readonly mark: Mark; readonly text: string }[] = [];
  private held = "";

  constructor(tokenizer: Tokenizer, marks: ReadonlyMap<string, Mark>) {
    this.detokenizer = new DetokenizeStream(tokenizer);
    for (const [text, mark] of marks) {
      const id = tokenizer.idOf(text);
      // Only byte-level vocabularies can be interrupted between two tokens without changing their text.
      if (id !== undefined && tokenizer.bytesOf(id))
        this.byId.set(id, { kind: "mark", mark, text, isToken: true });
      else this.spelled.push({ mark, text });
    }
  }

  push(id: number): Lexeme[] {
    const mark = this.byId.get(id);
    if (mark) return [...this.flush(), mark];
    return this.split(this.detokenizer.push(id));
  }

  /** Everything held back; an incomplete character becomes U+FFFD. */
  flush(): Lexeme[] {
    const lexemes = this.split(this.detokenizer.flush());
    if (this.held !== "") lexemes.push({ kind: "text", text: this.held });
    this.held = "";
    return lexemes;
  }

  private split(text: string): Lexeme[] {
    const lexemes: Lexeme[] = [];
    this.held += text;
    for (let next = this.nextSpelled(); next; next = this.nextSpelled()) {
      if (next.at > 0) lexemes.push({ kind: "text", text: this.held.slice(0, next.at) });
      lexemes.push({ kind: "mark", mark: next.mark, text: next.text, isToken: false });
      this.held = this.held.slice(next.at + next.text.length);
    }
    const certain = this.held.length - this.possibleOpening();
    if (certain > 0) lexemes.push({ kind: "text", text: this.held.slice(0, certain) });
    this.held = this.held.slice(certain);
    return lexemes;
  }

  private nextSpelled() {
    let first: { at: number; mark: Mark; text: string } | undefined;
    for (const { mark, text } of this.spelled) {
      const at = this.held.indexOf(text);
      if (at >= 0 && (!first || at < first.at)) first = { at, mark, text };
    }
    return first;
  }

  /** Length of the longest end of what is held that could be the beginning of a spelled mark. */
  private possibleOpening(): number {
    return Math.max(0, ...this.spelled.map(({ text }) => overlap(this.held, text)));
  }
}

/** Length of the longest end of `text` that is a proper beginning of `mark`. */
export function overlap(text: string, mark: string): number {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (text.endsWith(mark.slice(0, length))) return length;
  return 0;
}
