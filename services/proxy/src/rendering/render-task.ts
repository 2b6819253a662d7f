/**
 * Owns what is asked of rendering for one call and how it is answered: the ids of what is new, or of the whole
 * conversation (C2). The same function answers in the proxy's own thread and in a worker. Does not decide where.
 */
import type { Conversation } from "@mortise/capture";
import type { Renderer, Rendering } from "@mortise/rendering";

export interface RenderTask {
  readonly conversation: Conversation;
  /** What is kept of a captured turn; undefined: the conversation is rendered whole. */
  readonly kept:
    | {
        /** Leading messages that the kept ids stand for. */
        readonly messages: number;
        readonly tokens: number;
        /** Whether the kept ids end with an end-of-turn token. */
        readonly hasEnd: boolean;
      }
    | undefined;
  /** Of the whole context. */
  readonly maxTokens: number;
}

export type RenderOutcome =
  | { readonly kind: "extension" | "whole"; readonly rendering: Rendering }
  /** About how many tokens the context would have. */
  | { readonly kind: "too-long"; readonly tokens: number };

/** @throws MortiseError for messages that the template refuses */
export function renderTask(renderer: Renderer, { conversation, kept, maxTokens }: RenderTask): RenderOutcome {
  if (kept) {
    const { messages, tokens, hasEnd } = kept;
    const rendering = renderer.renderExtensionWithin(conversation, messages, hasEnd, maxTokens - tokens);
    if (rendering && "tooLong" in rendering) return { kind: "too-long", tokens: tokens + rendering.tooLong };
    if (rendering) return { kind: "extension", rendering };
  }
  const rendering = renderer.renderWholeWithin(conversation, maxTokens);
  if ("tooLong" in rendering) return { kind: "too-long", tokens: rendering.tooLong };
  return { kind: "whole", rendering };
}
