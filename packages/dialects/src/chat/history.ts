/** Owns turning the messages of a Chat Completions request into messages of a conversation. */
import type { Message, ToolCall } from "@mortise/capture";
import { customArguments } from "../custom-tool.js";
import { array, bad, isObject, type Json, object, optionalArray, string, textOf } from "../fields.js";
import { readContent } from "../openai-content.js";
import type { AuditNote } from "../types.js";

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readHistory(value: unknown, audit: AuditNote[]): Message[] {
  return array(value, "messages").map((message, at) => readMessage(message, `messages[${at}]`, audit));
}

function readMessage(value: unknown, field: string, audit: AuditNote[]): Message {
  const message = object(value, field);
  const role = string(message.role, `${field}.role`);
  const text = readContent(message.content, `${field}.content`, audit);
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", text };
    case "user":
      return { role, text };
    case "assistant": {
      const toolCalls = optionalArray(message.tool_calls, `${field}.tool_calls`).map((call, at) =>
        readToolCall(call, `${field}.tool_calls[${at}]`),
      );
      return { role, text, reasoning: reasoningOf(message), toolCalls };
    }
    case "tool":
      return { role, text, toolCallId: string(message.tool_call_id, `${field}.tool_call_id`) };
    default:
      throw bad(`${field}.role`, `is ${JSON.stringify(role)}, which no message here has`);
  }
}

/** Clients keep reasoning under either name, or both; those that speak to several APIs, as blocks. */
function reasoningOf(message: Json): string {
  for (const text of [message.reasoning_content, message.reasoning])
    if (typeof text === "string" && text !== "") return text;
  const blocks = Array.isArray(message.thinking_blocks) ? message.thinking_blocks : [];
  return blocks
    .map((block) => (isObject(block) && typeof block.thinking === "string" ? block.thinking : ""))
    .join("");
}

/** Arguments may be anything the policy once wrote, valid JSON or not: replayed history is never refused. */
function readToolCall(value: unknown, field: string): ToolCall {
  const call = object(value, field);
  const id = string(call.id, `${field}.id`);
  if (call.type === "custom") {
    const target = object(call.custom, `${field}.custom`);
    const input = textOf(target.input ?? "", `${field}.custom.input`);
    return { id, name: string(target.name, `${field}.custom.name`), arguments: customArguments(input) };
  }
  const target = object(call.function, `${field}.function`);
  const name = string(target.name, `${field}.function.name`);
  return { id, name, arguments: textOf(target.arguments, `${field}.function.arguments`) };
}
