/**
 * Owns the text and reasoning of a reply between its marks. Line breaks next to a mark are the template's glue,
 * not the policy's words: they are dropped there and kept everywhere else. Only line breaks are ever held back.
 */
import type { SampledPart } from "@mortise/capture";

export class Prose {
  private kind: "text" | "reasoning" = "text";
  private breaks = "";
  private isAfterMark = false;
  private isSilent = true;

  /** Nothing but white space has been said. */
  get isEmpty(): boolean {
    return this.isSilent;
  }

  get isReasoning(): boolean {
    return this.kind === "reasoning";
  }

  say(text: string, parts: SampledPart[]): void {
    const start = this.isAfterMark ? leadingBreaks(text) : 0;
    const end = trailingBreaks(text, start);
    if (start < end) {
      const said = this.breaks + text.slice(start, end);
      parts.push({ kind: this.kind, text: said });
      this.breaks = text.slice(end);
      this.isAfterMark = false;
      this.isSilent &&= said.trim() === "";
    } else this.breaks += text.slice(start);
  }

  /** A mark stands here; what follows is of this kind. */
  passMark(kind: "text" | "reasoning"): void {
    this.kind = kind;
    this.breaks = "";
    this.isAfterMark = true;
  }

  /** The reply ends without a mark: trailing line breaks are the policy's own. */
  end(parts: SampledPart[]): void {
    if (this.breaks !== "") parts.push({ kind: this.kind, text: this.breaks });
    this.breaks = "";
  }
}

function leadingBreaks(text: string): number {
  let at = 0;
  while (text[at] === "\n") at++;
  return at;
}

function trailingBreaks(text: string, start: number): number {
  let at = text.length;
  while (at > start && text[at - 1] === "\n") at--;
  return at;
}
