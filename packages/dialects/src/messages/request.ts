/**
 * Owns reading an Anthropic Messages request, or the body of a token count, into a model request. Unknown
 * fields, cache marks and betas are ignored, as every harness sends some. Sampling values are read to be
 * recorded: the policy decides what is applied (C8).
 *
 * Thinking: `adaptive` and `enabled` ask for it, `disabled` declines it; a request that is silent leaves it to
 * the run's policy. `display` is not honoured: the thinking always goes out, so that histories hold it.
 */
import { normaliseConversation } from "@mortise/capture";
import type { ModelRequest, RequestedSampling } from "../types.js";
import { bad, type Json, readArray, readNumber, readObject, requireShallow } from "./fields.js";
import { readHistory, readSystem } from "./history.js";
import { Audit } from "./placeholders.js";
import { readToolChoice, readTools } from "./tools.js";

/** What a turn record can hold. */
const INT32_MAX = 2 ** 31 - 1;

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readMessagesRequest(body: unknown): ModelRequest {
  const request = readObject(body, "the body");
  for (const field of ["system", "messages", "tools"]) requireShallow(request[field], field);
  const audit = new Audit();
  const system = readSystem(request.system, audit);
  const history = readHistory(request.messages, audit);
  const { tools, hostedTools } = readTools(request, audit);
  return {
    dialect: "anthropic-messages",
    conversation: normaliseConversation({ messages: [...system, ...history], tools }),
    toolChoice: readToolChoice(request.tool_choice, audit),
    hostedTools,
    toolTargets: new Map(),
    model: typeof request.model === "string" ? request.model : undefined,
    isStream: request.stream === true,
    wantsReasoning: readThinking(request.thinking),
    stopSequences: readStopSequences(request.stop_sequences),
    requested: readSampling(request),
    audit: audit.notes,
    wantsUsage: true,
    wantsTokens: false,
  };
}

function readThinking(value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  const { type } = readObject(value, "thinking");
  if (type === "adaptive" || type === "enabled") return true;
  return type === "disabled" ? false : undefined;
}

function readStopSequences(value: unknown): string[] {
  return readArray(value, "stop_sequences").map((one, at) => {
    if (typeof one === "string" && one !== "") return one;
    throw bad(`stop_sequences[${at}]`, "is not a non-empty string");
  });
}

function readSampling(request: Json): RequestedSampling {
  const temperature = readNumber(request.temperature, "temperature");
  const topP = readNumber(request.top_p, "top_p");
  const topK = readNumber(request.top_k, "top_k");
  const maxTokens = readNumber(request.max_tokens, "max_tokens");
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
