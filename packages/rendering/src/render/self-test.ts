/**
 * Owns the proof that a chat template can be extended by appending: for conversations of each kind that
 * harnesses hold, rendering whole must equal the parent's rendering, the reply, and the extension, in text
 * and in ids. Run once per checkpoint; does not decide what happens when it fails (see renderer.ts).
 */
import type { Conversation, Message, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";

/** What is proved about; the renderer itself. */
interface Subject {
  renderWhole(conversation: Conversation): { text: string; ids: Int32Array };
  extensionText(messages: readonly Message[], tools: readonly ToolSchema[]): string;
  encode(text: string): Int32Array;
}

const REPLY = "probe";
const user = (text: string): Message => ({ role: "user", text });
const reply: Message = { role: "assistant", text: REPLY, reasoning: "", toolCalls: [] };
const result: Message = { role: "tool", text: "ok", toolCallId: "probe" };

/** History before the reply, and what follows it. */
const PROBES: readonly { before: readonly Message[]; after: readonly Message[] }[] = [
  { before: [user("first")], after: [user("second")] },
  { before: [user("first")], after: [result] },
  { before: [user("first"), reply, result], after: [result, result] },
  { before: [user("first"), reply, result, reply, user("second")], after: [user("third")] },
];

export function isTemplateAppendOnly(renderer: Subject): boolean {
  return PROBES.every((probe) => isAppended(renderer, probe.before, probe.after));
}

function isAppended(renderer: Subject, before: readonly Message[], after: readonly Message[]): boolean {
  try {
    const parent = renderer.renderWhole({ messages: before, tools: [] });
    const whole = renderer.renderWhole({ messages: [...before, reply, ...after], tools: [] });
    const extension = renderer.extensionText(after, []);
    if (whole.text !== parent.text + REPLY + extension) return false;
    const tail = renderer.encode(extension);
    return tail.every((id, at) => whole.ids[whole.ids.length - tail.length + at] === id);
  } catch (error) {
    // A template that refuses one of the probes (no tool role, say) is used whole or not at all.
    if (error instanceof MortiseError) return false;
    throw error;
  }
}
