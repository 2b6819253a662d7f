/**
 * Owns reading an OpenAI Chat Completions request into a conversation. Unknown fields are ignored, as every
 * harness sends some; what would change the meaning of the reply and cannot be honoured is refused by name.
 * Sampling values are read to be recorded: the policy decides what is applied (C8).
 */
import {
  type Message,
  normaliseConversation,
  normaliseText,
  type TextContent,
  type ToolCall,
  type ToolSchema,
} from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { ModelRequest, RequestedSampling, ToolChoice } from "../types.js";

type Json = Readonly<Record<string, unknown>>;

const INT32_MAX = 2 ** 31 - 1;

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readChatRequest(body: unknown): ModelRequest {
  const request = object(body, "the body");
  const messages = array(request.messages, "messages").map(readMessage);
  if (messages.length === 0) throw bad("messages", "is empty");
  if ((request.n ?? 1) !== 1) throw bad("n", "must be 1");
  if (array(request.stop ?? [], "stop", true).length > 0) throw bad("stop", "is not supported");
  const tools = array(request.tools ?? [], "tools").map(readTool);
  const options = request.stream_options;
  return {
    dialect: "openai-chat",
    conversation: normaliseConversation({ messages, tools }),
    toolChoice: readToolChoice(request.tool_choice),
    hostedTools: [],
    toolTargets: new Map(),
    model: typeof request.model === "string" ? request.model : undefined,
    isStream: request.stream === true,
    wantsReasoning: undefined,
    stopSequences: [],
    requested: readSampling(request),
    audit: [],
    wantsUsage: options ? object(options, "stream_options").include_usage === true : false,
    wantsTokens: request.return_token_ids === true,
  };
}

function readToolChoice(value: unknown): ToolChoice {
  if (value === undefined || value === null || value === "auto") return { mode: "auto" };
  if (value === "none" || value === "required") return { mode: value };
  const { name } = object(object(value, "tool_choice").function, "tool_choice.function");
  if (typeof name !== "string") throw bad("tool_choice.function.name", "is not a string");
  return { mode: "tool", name };
}

function readSampling(request: Json): RequestedSampling {
  const read = (name: string): number | undefined => {
    const value = request[name] ?? undefined;
    if (value !== undefined && !Number.isFinite(value)) throw bad(name, "is not a finite number");
    return value as number | undefined;
  };
  const [temperature, topP, topK] = [read("temperature"), read("top_p"), read("top_k")];
  const maxTokens = read("max_completion_tokens") ?? read("max_tokens");
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK: recordable(topK, -INT32_MAX) }),
    ...(maxTokens !== undefined && { maxTokens: recordable(maxTokens, 0) }),
  };
}

/** A whole number as a turn record holds it: a wish beyond its range must not cost the turn its record. */
function recordable(value: number, lowest: number): number {
  return Math.min(INT32_MAX, Math.max(lowest, Math.trunc(value)));
}

function readMessage(value: unknown, at: number): Message {
  const field = `messages[${at}]`;
  const message = object(value, field);
  const text = normaliseText(readContent(message.content, `${field}.content`));
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", text };
    case "user":
      return { role: "user", text };
    case "assistant":
      return {
        role: "assistant",
        text,
        reasoning: typeof message.reasoning_content === "string" ? message.reasoning_content : "",
        toolCalls: readToolCalls(message.tool_calls, field),
      };
    case "tool":
      if (typeof message.tool_call_id !== "string") throw bad(`${field}.tool_call_id`, "is not a string");
      return { role: "tool", text, toolCallId: message.tool_call_id };
    default:
      throw bad(`${field}.role`, `is ${JSON.stringify(message.role) ?? "missing"}`);
  }
}

function readContent(value: unknown, field: string): TextContent {
  if (value === null || value === undefined || typeof value === "string") return value;
  return array(value, field).map((part, at) => {
    const { type, text } = object(part, `${field}[${at}]`);
    if (type !== "text" || typeof text !== "string")
      throw bad(`${field}[${at}]`, "is not text; the policy reads text only");
    return { text };
  });
}

function readToolCalls(value: unknown, field: string): ToolCall[] {
  return array(value ?? [], `${field}.tool_calls`).map((one, at) => {
    const where = `${field}.tool_calls[${at}]`;
    const call = object(one, where);
    const target = object(call.function, `${where}.function`);
    if (typeof call.id !== "string") throw bad(`${where}.id`, "is not a string");
    if (typeof target.name !== "string") throw bad(`${where}.function.name`, "is not a string");
    // Arguments may be anything the policy once wrote, valid JSON or not: never refuse replayed history.
    const text =
      typeof target.arguments === "string" ? target.arguments : JSON.stringify(target.arguments ?? {});
    return { id: call.id, name: target.name, arguments: text };
  });
}

function readTool(value: unknown, at: number): ToolSchema {
  const tool = object(value, `tools[${at}]`);
  const target = object(tool.function, `tools[${at}].function`);
  if (typeof target.name !== "string" || target.name === "")
    throw bad(`tools[${at}].function.name`, "is not a name");
  const description = typeof target.description === "string" ? target.description : "";
  return { name: target.name, description, parameters: target.parameters ?? null };
}

function object(value: unknown, field: string): Json {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw bad(field, "is not an object");
}

function array(value: unknown, field: string, allowsOne = false): unknown[] {
  if (Array.isArray(value)) return value;
  if (allowsOne) return [value];
  throw bad(field, "is not an array");
}

function bad(field: string, what: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_PROVIDER_BAD_REQUEST",
    message: `${field} ${what}.`,
    detail: { field },
  });
}
