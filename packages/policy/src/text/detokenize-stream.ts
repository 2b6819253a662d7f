/**
 * Owns turning ids into text while they arrive. A character whose bytes are spread over several tokens is held
 * back until it is complete: what was pushed out is never taken back.
 */
import type { Tokenizer } from "./tokenizer.js";

const REPLACEMENT = "\ufffd";

export class DetokenizeStream {
  readonly #tokenizer: Tokenizer;
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Vocabularies that are not byte-level: all ids, and how much of their text is out. */
  readonly #ids: number[] = [];
  #sent = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  /** The text that became certain with this token; often "", never half a character. */
  push(id: number): string {
    const bytes = this.#tokenizer.bytesOf(id);
    if (bytes !== undefined) return this.#decoder.decode(bytes, { stream: true });
    this.#ids.push(id);
    const text = this.#tokenizer.decode(this.#ids);
    return text.endsWith(REPLACEMENT) ? "" : this.#release(text);
  }

  /** The rest at the end of a turn: an incomplete character becomes U+FFFD. */
  flush(): string {
    const rest = this.#decoder.decode();
    return this.#ids.length === 0 ? rest : this.#release(this.#tokenizer.decode(this.#ids));
  }

  #release(text: string): string {
    const fresh = text.slice(this.#sent);
    this.#sent = text.length;
    return fresh;
  }
}
