/**
 * Owns turning sampled ids into the parts of a reply while they arrive: text, tool calls, and the number of
 * ids up to each call's end. Text that could begin a call is held back until it is decided; what spells no
 * call stays text, whole. Does not mint ids and does not write any wire format.
 *
 * The same ids give the same parts however they are cut, so a reply is rebuilt from the journal (C6).
 */
import type { SampledPart, ToolSchema } from "@mortise/capture";
import { DetokenizeStream, type Tokenizer } from "@mortise/policy";
import { CALL_CLOSE, CALL_OPEN, type ToolFormat } from "./types.js";

export interface ReplySyntax {
  readonly tokenizer: Tokenizer;
  /** Undefined when the request offers no tools: then everything is text. */
  readonly format: ToolFormat | undefined;
  readonly tools: readonly ToolSchema[];
  /** Ids that end the turn; they are sampled and trained, and never shown. */
  readonly stopIds: ReadonlySet<number>;
}

export class ReplyParser {
  private readonly syntax: ReplySyntax;
  private readonly detokenizer: DetokenizeStream;
  private held = "";
  private count = 0;
  private calls = 0;

  constructor(syntax: ReplySyntax) {
    this.syntax = syntax;
    this.detokenizer = new DetokenizeStream(syntax.tokenizer);
  }

  /** The parts that became certain with these ids. */
  push(ids: Iterable<number>): SampledPart[] {
    const parts: SampledPart[] = [];
    for (const id of ids) {
      this.count++;
      if (this.syntax.stopIds.has(id)) continue;
      this.held += this.detokenizer.push(id);
      this.release(parts);
    }
    return joinTexts(parts);
  }

  /** What is left at the end of the turn: an unfinished call is text. */
  end(): SampledPart[] {
    const parts: SampledPart[] = [];
    this.held += this.detokenizer.flush();
    this.release(parts);
    if (this.held !== "") parts.push({ kind: "text", text: this.held });
    this.held = "";
    return joinTexts(parts);
  }

  private release(parts: SampledPart[]): void {
    const { format, tools } = this.syntax;
    while (this.held !== "") {
      const open = format ? this.held.indexOf(CALL_OPEN) : -1;
      const textEnd = open >= 0 ? open : this.held.length - (format ? possibleOpening(this.held) : 0);
      if (textEnd > 0) parts.push({ kind: "text", text: this.held.slice(0, textEnd) });
      this.held = this.held.slice(textEnd);
      if (open < 0) return;
      const close = this.held.indexOf(CALL_CLOSE);
      if (close < 0) return;
      const end = close + CALL_CLOSE.length;
      const call = format!.parse(this.held.slice(CALL_OPEN.length, close), tools);
      if (call) {
        const ordinal = this.calls++;
        parts.push(
          { kind: "call-start", call: ordinal, name: call.name },
          { kind: "call-arguments", call: ordinal, text: call.arguments },
          { kind: "call-end", call: ordinal, tokenEnd: this.count },
        );
      } else parts.push({ kind: "text", text: this.held.slice(0, end) });
      this.held = this.held.slice(end);
    }
  }
}

/** Length of the longest end of `text` that could be the beginning of a call. */
function possibleOpening(text: string): number {
  for (let length = Math.min(CALL_OPEN.length - 1, text.length); length > 0; length--)
    if (text.endsWith(CALL_OPEN.slice(0, length))) return length;
  return 0;
}

function joinTexts(parts: readonly SampledPart[]): SampledPart[] {
  const joined: SampledPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.kind === "text" && last?.kind === "text")
      joined[joined.length - 1] = { kind: "text", text: last.text + part.text };
    else joined.push(part);
  }
  return joined;
}
