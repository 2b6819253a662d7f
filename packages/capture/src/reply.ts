/**
 * Owns what a sampled reply says, in the order it was sampled: the form every tool-call parser produces and
 * every wire protocol writes. Parts are deltas; a reader concatenates those of one kind that follow each
 * other. Does not parse tokens (packages/rendering) and writes no wire format (packages/dialects).
 */
import type { FinishReason } from "@mortise/contracts";

/** A call's parts carry its ordinal in the turn, from 0; calls do not interleave. */
export type SampledPart =
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "text"; readonly text: string }
  /** `tokenStart`: sampled ids before the call's first, where the parser can tell. */
  | {
      readonly kind: "call-start";
      readonly call: number;
      readonly name: string;
      readonly tokenStart?: number;
    }
  /** A piece of the argument text, as the policy wrote it. */
  | { readonly kind: "call-arguments"; readonly call: number; readonly text: string }
  /** `tokenEnd`: sampled ids up to and including the call's last. A call without it was cut off. */
  | { readonly kind: "call-end"; readonly call: number; readonly tokenEnd: number };

/** A sampled part, its calls identified: ids are unique in a session and match `[A-Za-z0-9_-]+`. */
export type ReplyPart =
  | Exclude<SampledPart, { kind: "call-start" }>
  | {
      readonly kind: "call-start";
      readonly call: number;
      readonly id: string;
      readonly name: string;
      readonly tokenStart?: number;
    };

/** Known when a reply ends. Counts are tokens. */
export interface ReplyEnd {
  readonly finish: FinishReason;
  /** The request's own stop sequence that ended the reply; absent when none did. */
  readonly stopSequence?: string;
  /** Whole context, cached or not: harnesses compact by it. */
  readonly promptTokens: number;
  /** Of `promptTokens`, those whose ids were kept from an earlier turn. */
  readonly cachedTokens: number;
  /** All sampled ids, the end-of-turn token and reasoning included. */
  readonly completionTokens: number;
  /** Of `completionTokens`, those inside reasoning. */
  readonly reasoningTokens: number;
}
