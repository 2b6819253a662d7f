/**
 * Owns reading an OpenAI Chat Completions request into a conversation. Unknown fields are ignored, as every
 * harness sends some; what would change the meaning of the reply and cannot be honoured is refused by name.
 * Messages are history.ts, tools tools.ts.
 */
import { normaliseConversation } from "@mortise/capture";
import { bad, isObject, type Json, object, string } from "../fields.js";
import { requireShallow } from "../nesting.js";
import { readSampling } from "../sampling.js";
import type { AuditNote, ModelRequest, TokenField } from "../types.js";
import { readHistory } from "./history.js";
import { readToolChoice, readTools } from "./tools.js";

/** Wishes about sampling that a turn record has no field for; that they were made is noted. */
const UNRECORDED_SAMPLING = [
  "min_p",
  "presence_penalty",
  "frequency_penalty",
  "repetition_penalty",
  "logit_bias",
  "seed",
];

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readChatRequest(body: unknown): ModelRequest {
  requireShallow(body, "the body");
  const request = object(body, "the body");
  refuseOtherApis(request);
  const audit: AuditNote[] = [];
  const messages = readHistory(request.messages, audit);
  if (messages.length === 0) throw bad("messages", "is empty");
  const tools = readTools(request.tools);
  noteIgnored(request, audit);
  const tokenFields = readTokenFields(request);
  return {
    dialect: "openai-chat",
    conversation: normaliseConversation({ messages, tools: tools.schemas }),
    toolChoice: readToolChoice(request.tool_choice, audit),
    hostedTools: tools.hosted,
    toolTargets: tools.targets,
    model: typeof request.model === "string" ? request.model : undefined,
    isStream: request.stream === true,
    wantsReasoning: wantsReasoning(request),
    stopSequences: readStop(request.stop),
    requested: readSampling(request, "max_completion_tokens", "max_tokens"),
    audit,
    wantsUsage: isObject(request.stream_options) && request.stream_options.include_usage === true,
    wantsTokens: tokenFields.length > 0,
    tokenFields,
  };
}

function refuseOtherApis(request: Json): void {
  if ((request.n ?? 1) !== 1) throw bad("n", "must be 1");
  const { functions } = request;
  if (Array.isArray(functions) && functions.length > 0) throw bad("functions", "is not supported; use tools");
}

function readStop(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return [string(value, "stop")];
  return value.map((one, at) => string(one, `stop[${at}]`));
}

function readTokenFields(request: Json): TokenField[] {
  const fields: TokenField[] = [];
  if (request.return_token_ids === true) fields.push("token_ids");
  if (request.logprobs === true) fields.push("logprobs");
  return fields;
}

/** The ways in which servers of open models let a client turn thinking on and off, the plainest first. */
function wantsReasoning(request: Json): boolean | undefined {
  const template = isObject(request.chat_template_kwargs) ? request.chat_template_kwargs : {};
  for (const flag of [template.enable_thinking, request.enable_thinking])
    if (typeof flag === "boolean") return flag;
  const thinking = isObject(request.thinking) ? request.thinking.type : undefined;
  if (thinking === "enabled" || thinking === "disabled") return thinking === "enabled";
  const effort = request.reasoning_effort;
  return typeof effort === "string" ? effort !== "none" : undefined;
}

function noteIgnored(request: Json, audit: AuditNote[]): void {
  for (const field of UNRECORDED_SAMPLING)
    if ((request[field] ?? null) !== null) audit.push({ what: "sampling-ignored", field });
  const format = request.response_format;
  if (isObject(format) && format.type !== "text")
    audit.push({ what: "text-format-ignored", field: "response_format" });
}
