/**
 * Owns what happens to system messages that do not stand first, which many templates refuse and many policies
 * misread. Those before the first assistant message are always merged into the leading one; later ones by policy:
 *
 *  - `to-user`   they become user messages where they stand (default: nothing earlier changes)
 *  - `merge-up`  they are merged into the leading one, which renders the whole conversation anew
 *  - `keep`      they stay, for templates that take them
 */
import type { Message } from "@mortise/capture";
import type { RenderNote } from "./note.js";

export type LateSystemPolicy = "to-user" | "merge-up" | "keep";

const SEPARATOR = "\n\n";

/** Messages of a whole conversation, with at most one leading system message under any policy but `keep`. */
export function placeSystemMessages(
  messages: readonly Message[],
  policy: LateSystemPolicy,
): { messages: readonly Message[]; notes: RenderNote[] } {
  const firstReply = messages.findIndex((message) => message.role === "assistant");
  const lead: string[] = [];
  const rest: Message[] = [];
  const notes: RenderNote[] = [];
  for (const [at, message] of messages.entries()) {
    const isLate = firstReply >= 0 && at > firstReply;
    if (message.role !== "system") rest.push(message);
    else if (!isLate || policy === "merge-up") {
      lead.push(message.text);
      if (at > 0) notes.push({ what: "system-merged-up", field: `messages[${at}]` });
    } else rest.push(lateMessage(message, policy, at, notes));
  }
  if (lead.length === 0) return { messages: rest, notes };
  return { messages: [{ role: "system", text: lead.join(SEPARATOR) }, ...rest], notes };
}

/**
 * Messages that follow a reply; undefined when the policy changes what stands before them.
 * @param offset index of the first of them in the conversation
 */
export function placeLaterSystemMessages(
  messages: readonly Message[],
  policy: LateSystemPolicy,
  offset: number,
): { messages: readonly Message[]; notes: RenderNote[] } | undefined {
  const notes: RenderNote[] = [];
  const isSystem = (message: Message) => message.role === "system";
  if (!messages.some(isSystem)) return { messages, notes };
  if (policy === "merge-up") return undefined;
  const placed = messages.map((message, at) =>
    isSystem(message) ? lateMessage(message, policy, offset + at, notes) : message,
  );
  return { messages: placed, notes };
}

function lateMessage(message: Message, policy: LateSystemPolicy, at: number, notes: RenderNote[]): Message {
  if (policy === "keep") return message;
  notes.push({ what: "system-to-user", field: `messages[${at}]` });
  return { role: "user", text: message.role === "system" ? message.text : "" };
}
