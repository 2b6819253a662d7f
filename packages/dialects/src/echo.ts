/**
 * Owns the text a client will send back for a reply, where it is not the sampled text. A turn without calls is
 * recognised by its text (C4), so the record must hold the digest of this one.
 */
import type { ModelRequest } from "./types.js";

/**
 * What an Anthropic client is shown of a reply that says nothing (messages/blocks.ts, B2). It is rendered only
 * where history is: a turn that is kept keeps its own ids.
 */
export const EMPTY_REPLY_TEXT = "[no reply]";

/** @param text the sampled text without reasoning and calls */
export function echoedText(request: Pick<ModelRequest, "dialect">, text: string, hasCalls: boolean): string {
  const isShown = request.dialect !== "anthropic-messages" || hasCalls || text.trim() !== "";
  return isShown ? text : EMPTY_REPLY_TEXT;
}
