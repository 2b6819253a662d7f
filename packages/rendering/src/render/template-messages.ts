/**
 * Owns the form in which messages and tools go to a chat template. Malformed arguments came from a policy or a
 * harness and stay in the history: they are shown, never refused. Does not decide which messages are rendered.
 */
import type { Message, ToolSchema } from "@mortise/capture";
import type { ChatMessage } from "@mortise/policy";

export interface MessageForm {
  /** The template writes argument text as it is; otherwise what is no JSON object is wrapped into one. */
  readonly takesArgumentText: boolean;
  /** Whether thinking that the harness sent back is shown to the template. */
  readonly showsReasoning: boolean;
}

export function templateMessage(message: Message, form: MessageForm): ChatMessage {
  if (message.role === "tool")
    return { role: "tool", content: message.text, tool_call_id: message.toolCallId };
  if (message.role !== "assistant") return { role: message.role, content: message.text };
  return {
    role: "assistant",
    content: message.text,
    ...(form.showsReasoning && message.reasoning !== "" && { reasoning_content: message.reasoning }),
    ...(message.toolCalls.length > 0 && {
      tool_calls: message.toolCalls.map((call) => ({
        type: "function",
        id: call.id,
        function: { name: call.name, arguments: templateArguments(call.arguments, form) },
      })),
    }),
  };
}

/** A mapping, as every template takes it. No text at all is how some harnesses send back an empty one. */
function templateArguments(text: string, form: MessageForm): unknown {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Malformed: rendered below.
  }
  return form.takesArgumentText ? text : { arguments: text };
}

export function templateTool(tool: ToolSchema): Readonly<Record<string, unknown>> {
  const { name, description, parameters } = tool;
  return { type: "function", function: { name, description, parameters } };
}
