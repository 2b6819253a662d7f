/**
 * Owns the conversation every API dialect is translated into, and its normalisation (C4): what may differ
 * between two requests without making them different histories. Does not parse wire formats (the proxy
 * does) and does not compare histories (see turn-tree.ts).
 *
 * Normalisation, in full:
 *  - text is a string; a list of text parts is their concatenation; null and absent are "";
 *  - cache marks and every other field of a part or message are dropped;
 *  - the line of a volatile header (client build and request nonces) at the beginning of a part is dropped;
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

/** Lines with these beginnings change from request to request and carry nothing for the policy. */
const VOLATILE_HEADERS = ["x-anthropic-billing-header:"];

export type TextContent = string | null | undefined | readonly { readonly text: string }[];

/** One string from a string or a list of text parts, without volatile headers. */
export function normaliseText(content: TextContent): string {
  if (content === null || content === undefined) return "";
  const parts = typeof content === "string" ? [content] : content.map((part) => part.text);
  return parts.map(withoutHeader).join("");
}

/** A header is a part of its own; a gateway that joins parts leaves the prompt behind its line. */
function withoutHeader(text: string): string {
  if (!VOLATILE_HEADERS.some((header) => text.startsWith(header))) return text;
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}

/** The rank of a result that answers no call. */
const LAST = Number.MAX_SAFE_INTEGER;

/** Puts every run of tool results into the order of the calls it answers; unknown ids go last, as given. */
export function normaliseConversation(conversation: Conversation): Conversation {
  const messages: Message[] = [];
  let ranks: ReadonlyMap<string, number> = new Map();
  let run: Message[] = [];
  const endRun = () => {
    const rank = (m: Message) => (m.role === "tool" ? ranks.get(m.toolCallId) : undefined) ?? LAST;
    for (const result of run.sort((a, b) => rank(a) - rank(b))) messages.push(result);
    run = [];
  };
  for (const message of conversation.messages) {
    if (message.role === "tool") {
      run.push(message);
      continue;
    }
    endRun();
    messages.push(message);
    if (message.role === "assistant") ranks = firstPositions(message.toolCalls);
  }
  endRun();
  return { messages, tools: conversation.tools };
}

/** Where each id stands first. A map, since a body may hold as many calls as its size allows. */
function firstPositions(calls: readonly ToolCall[]): Map<string, number> {
  const positions = new Map<string, number>();
  for (const [at, { id }] of calls.entries()) if (!positions.has(id)) positions.set(id, at);
  return positions;
}
