/**
 * Owns turning conversations into token ids with a checkpoint's chat template (C2). A conversation without a
 * captured beginning is rendered whole; an extension renders only what follows the parent's reply, cut at the
 * end-of-turn token, so that encode(a) + encode(b) = encode(ab). Does not decide what extends what.
 *
 * An extension is rendered behind a marker reply: the text after the marker is what the template writes after
 * any reply. That this equals appending is proved for the template at start (self-test.ts); where it does not
 * hold, `isAppendOnly` is false and every request is rendered whole, as a branch of its own.
 */
import type { Conversation, Message, ToolSchema } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { ChatMessage, ChatTemplate, Tokenizer } from "@mortise/policy";
import { isTemplateAppendOnly } from "./self-test.js";

/** Letters and digits only: no template trims or escapes it, and no conversation holds it. */
const MARKER = "mortise0reply0marker";

export interface RendererParts {
  readonly chatTemplate: ChatTemplate;
  readonly tokenizer: Tokenizer;
  readonly eosIds: ReadonlySet<number>;
}

export class Renderer {
  /** False: the template rewrites earlier turns, so history is never extended (history policy `branch`). */
  readonly isAppendOnly: boolean;
  private readonly parts: RendererParts;

  constructor(parts: RendererParts) {
    this.parts = parts;
    this.isAppendOnly = isTemplateAppendOnly(this);
  }

  /** The text and ids of a whole conversation, up to where the assistant's turn begins. */
  renderWhole(conversation: Conversation): { text: string; ids: Int32Array } {
    const text = this.text(conversation.messages, conversation.tools, true);
    return { text, ids: this.parts.tokenizer.encode(text) };
  }

  /**
   * The ids to append after a reply: its end-of-turn token unless `hasEnd`, glue, the new messages, and the
   * beginning of the next assistant turn.
   */
  renderExtension(messages: readonly Message[], tools: readonly ToolSchema[], hasEnd: boolean): Int32Array {
    const ids = this.parts.tokenizer.encode(this.extensionText(messages, tools));
    const first = ids[0];
    if (first === undefined || !this.parts.eosIds.has(first))
      throw new MortiseError({
        code: "MORTISE_POLICY_UNSUPPORTED",
        message: "The chat template does not end an assistant message with an end-of-turn token.",
        fix: "Use a chat template that closes assistant messages with the eos token of the checkpoint.",
      });
    return hasEnd ? ids.subarray(1) : ids;
  }

  extensionText(messages: readonly Message[], tools: readonly ToolSchema[]): string {
    const before: Message[] = [
      { role: "user", text: "x" },
      { role: "assistant", text: MARKER, reasoning: "", toolCalls: [] },
    ];
    const text = this.text([...before, ...messages], tools, true);
    return text.slice(text.lastIndexOf(MARKER) + MARKER.length);
  }

  private text(messages: readonly Message[], tools: readonly ToolSchema[], opensReply: boolean): string {
    return this.parts.chatTemplate.renderMessages(
      messages.map(templateMessage),
      tools.length > 0 ? tools.map(templateTool) : undefined,
      { addGenerationPrompt: opensReply },
    );
  }

  encode(text: string): Int32Array {
    return this.parts.tokenizer.encode(text);
  }
}

function templateMessage(message: Message): ChatMessage {
  if (message.role === "tool")
    return { role: "tool", content: message.text, tool_call_id: message.toolCallId };
  if (message.role !== "assistant") return { role: message.role, content: message.text };
  if (message.toolCalls.length === 0) return { role: "assistant", content: message.text };
  return {
    role: "assistant",
    content: message.text,
    tool_calls: message.toolCalls.map((call) => ({
      type: "function",
      id: call.id,
      function: { name: call.name, arguments: templateArguments(call.arguments) },
    })),
  };
}

/**
 * Templates want a mapping and may refuse anything else. Argument text that is no JSON object came from a
 * policy or a harness and stays in the history: it is shown, never refused.
 */
function templateArguments(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    return { arguments: text };
  }
  return { arguments: text };
}

function templateTool(tool: ToolSchema): Readonly<Record<string, unknown>> {
  const { name, description, parameters } = tool;
  return { type: "function", function: { name, description, parameters } };
}
