/**
 * Owns cutting a reply into content blocks, the same for a stream and for a whole message: indexes from 0, one
 * block open at a time. Writes no wire format (see writer.ts).
 *
 * B1  No block is empty or blank: clients drop such blocks or refuse them in the next request. Blank text waits
 *     for text that is not, so that the concatenated text is the sampled one.
 * B2  A reply always has something to show. One without calls and text gets a text block of ours, because
 *     Claude Code otherwise forgets the reply, rewrites the message before it and asks again. The text is
 *     echoed, so a turn is recorded with it as its text (../echo.ts); what was sampled stays what it was.
 */
import type { ReplyPart } from "@mortise/capture";
import { EMPTY_REPLY_TEXT } from "../echo.js";

export type Block =
  | { readonly kind: "reasoning" | "text" }
  | { readonly kind: "call"; readonly id: string; readonly name: string };

export type BlockStep =
  | { readonly step: "start"; readonly index: number; readonly block: Block }
  | { readonly step: "delta"; readonly index: number; readonly kind: Block["kind"]; readonly text: string }
  | { readonly step: "stop"; readonly index: number; readonly kind: Block["kind"] };

export class Blocks {
  /** Calls that were not cut off. */
  completeCalls = 0;
  private open: Block | undefined;
  private count = 0;
  private isVisible = false;
  private readonly blank = { reasoning: "", text: "" };

  push(part: ReplyPart): BlockStep[] {
    switch (part.kind) {
      case "reasoning":
      case "text":
        return this.prose(part.kind, part.text);
      case "call-start":
        return [...this.stop(), this.start({ kind: "call", id: part.id, name: part.name })];
      case "call-arguments":
        return part.text === "" ? [] : [this.delta("call", part.text)];
      case "call-end":
        this.completeCalls++;
        return this.stop();
    }
  }

  /** Closes what is open, after B2. */
  end(): BlockStep[] {
    if (this.isVisible) return this.stop();
    this.blank.text = "";
    return [...this.prose("text", EMPTY_REPLY_TEXT), ...this.stop()];
  }

  private prose(kind: "reasoning" | "text", text: string): BlockStep[] {
    if (text === "") return [];
    if (this.open?.kind === kind) return [this.delta(kind, text)];
    this.blank[kind] += text;
    const held = this.blank[kind];
    if (held.trim() === "") return [];
    this.blank[kind] = "";
    return [...this.stop(), this.start({ kind }), this.delta(kind, held)];
  }

  private start(block: Block): BlockStep {
    this.open = block;
    this.isVisible ||= block.kind !== "reasoning";
    return { step: "start", index: this.count, block };
  }

  private delta(kind: Block["kind"], text: string): BlockStep {
    return { step: "delta", index: this.count, kind, text };
  }

  private stop(): BlockStep[] {
    if (!this.open) return [];
    const { kind } = this.open;
    this.open = undefined;
    return [{ step: "stop", index: this.count++, kind }];
  }
}
