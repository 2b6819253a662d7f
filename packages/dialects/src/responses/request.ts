/**
 * Owns reading an OpenAI Responses request into a conversation. Unknown fields are ignored, as every harness
 * sends some; what would change the meaning of the reply and cannot be honoured is refused by name. Items are
 * history.ts, tools tools.ts.
 */
import { normaliseConversation } from "@mortise/capture";
import { bad, isObject, type Json, object } from "../fields.js";
import { requireShallow } from "../nesting.js";
import { readSampling } from "../sampling.js";
import type { AuditNote, ModelRequest } from "../types.js";
import { readHistory } from "./history.js";
import { readToolChoice, readTools } from "./tools.js";

/** Fields that point to what a storing API would hold. A request here says everything itself. */
const STORED = ["previous_response_id", "conversation", "prompt"];

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readResponsesRequest(body: unknown): ModelRequest {
  requireShallow(body, "the body");
  const request = object(body, "the body");
  for (const field of STORED)
    if ((request[field] ?? undefined) !== undefined)
      throw bad(field, "refers to something stored; nothing is stored, so send the whole input");
  if (request.background === true) throw bad("background", "is not supported; leave it out");
  const audit: AuditNote[] = [];
  const tools = readTools(request.tools);
  const messages = readHistory(request.input, request.instructions, tools, audit);
  if (!messages.some((message) => message.role !== "system")) throw bad("input", "holds no message");
  if (asksForFormat(request)) audit.push({ what: "text-format-ignored", field: "text.format" });
  return {
    dialect: "openai-responses",
    conversation: normaliseConversation({ messages, tools: tools.schemas }),
    toolChoice: readToolChoice(request.tool_choice, tools, audit),
    hostedTools: tools.hosted,
    toolTargets: tools.targets,
    model: typeof request.model === "string" ? request.model : undefined,
    isStream: request.stream === true,
    wantsReasoning: wantsReasoning(request.reasoning),
    stopSequences: [],
    requested: readSampling(request, "max_output_tokens"),
    audit,
    wantsUsage: true,
    wantsTokens: false,
  };
}

function wantsReasoning(value: unknown): boolean | undefined {
  const effort = isObject(value) ? value.effort : undefined;
  return typeof effort === "string" ? effort !== "none" : undefined;
}

function asksForFormat({ text }: Json): boolean {
  return isObject(text) && isObject(text.format) && text.format.type !== "text";
}
