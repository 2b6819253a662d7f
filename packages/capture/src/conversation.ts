/**
 * Owns the conversation every API dialect is translated into, and its normalisation (C4): what may differ
 * between two requests without making them different histories. Does not parse wire formats (the proxy
 * does) and does not compare histories (see turn-tree.ts).
 *
 * Normalisation, in full:
 *  - text is a string; a list of text parts is their concatenation; null and absent are "";
 *  - cache marks and every other field of a part or message are dropped;
 *  - text parts that begin with a volatile header (client build and request nonces) are dropped;
 *  - `developer` is `system`;
 *  - the results of parallel calls stand in the order of the calls, whatever order they came in.
 */

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Argument text exactly as the harness or the policy wrote it; need not be valid JSON. */
  readonly arguments: string;
}

export type Message =
  | { readonly role: "system" | "user"; readonly text: string }
  | {
      readonly role: "assistant";
      readonly text: string;
      /** Thinking the harness sent back; "" where it sent none. */
      readonly reasoning: string;
      readonly toolCalls: readonly ToolCall[];
    }
  | { readonly role: "tool"; readonly text: string; readonly toolCallId: string };

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments; null when the request gave none. */
  readonly parameters: unknown;
}

export interface Conversation {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSchema[];
}

/** Text blocks with these beginnings change from request to request and carry nothing for the policy. */
const VOLATILE_HEADERS = ["x-anthropic-billing-header:"];

export type TextContent = string | null | undefined | readonly { readonly text: string }[];

/** One string from a string or a list of text parts, without volatile header blocks. */
export function normaliseText(content: TextContent): string {
  if (content === null || content === undefined) return "";
  const parts = typeof content === "string" ? [content] : content.map((part) => part.text);
  return parts.filter((text) => !VOLATILE_HEADERS.some((header) => text.startsWith(header))).join("");
}

/** Puts every run of tool results into the order of the calls it answers; unknown ids go last, as given. */
export function normaliseConversation(conversation: Conversation): Conversation {
  const messages = [...conversation.messages];
  let callIds: readonly string[] = [];
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]!;
    if (message.role === "assistant") callIds = message.toolCalls.map((call) => call.id);
    if (message.role !== "tool") continue;
    const end = endOfToolRun(messages, at);
    const rank = (m: Message) => {
      const found = m.role === "tool" ? callIds.indexOf(m.toolCallId) : -1;
      return found < 0 ? callIds.length : found;
    };
    messages.splice(at, end - at, ...messages.slice(at, end).sort((a, b) => rank(a) - rank(b)));
    at = end - 1;
  }
  return { messages, tools: conversation.tools };
}

function endOfToolRun(messages: readonly Message[], start: number): number {
  let end = start;
  while (messages[end]?.role === "tool") end++;
  return end;
}
