/** Owns the replies that tests write: their head, their end, and their parts. */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason } from "@mortise/contracts";
import type { ReplyHead } from "../src/index.js";

export const HEAD: ReplyHead = { turn: "trial-t3", model: "any-alias", createdMs: 1_700_000_000_900 };

export const END: ReplyEnd = {
  finish: FinishReason.STOP,
  promptTokens: 100,
  cachedTokens: 60,
  completionTokens: 20,
  reasoningTokens: 7,
};

export const CUT: ReplyEnd = { ...END, finish: FinishReason.LENGTH };

export const text = (value: string): ReplyPart => ({ kind: "text", text: value });
export const reasoning = (value: string): ReplyPart => ({ kind: "reasoning", text: value });

/** A call whose argument text comes in these pieces. */
export function call(ordinal: number, name: string, ...pieces: readonly string[]): ReplyPart[] {
  return [...cutCall(ordinal, name, ...pieces), { kind: "call-end", call: ordinal, tokenEnd: 10 }];
}

/** A call that was cut off behind these pieces. */
export function cutCall(ordinal: number, name: string, ...pieces: readonly string[]): ReplyPart[] {
  return [
    { kind: "call-start", call: ordinal, id: `call_${ordinal}`, name },
    ...pieces.map((piece): ReplyPart => ({ kind: "call-arguments", call: ordinal, text: piece })),
  ];
}
