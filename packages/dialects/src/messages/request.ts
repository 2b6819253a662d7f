/**
 * Owns reading an Anthropic Messages request, or the body of a token count, into a model request. Unknown
 * fields, cache marks and betas are ignored, as every harness sends some. Sampling values, and how many tokens
 * a harness wants at most, are recorded; the policy decides what is applied (C8).
 *
 * Thinking: `adaptive` and `enabled` ask for it, `disabled` declines it; a request that is silent leaves it to
 * the run's policy. `display` is not honoured: the thinking always goes out, so that histories hold it.
 */
import { normaliseConversation } from "@mortise/capture";
import { nonEmptyString, object, optionalArray } from "../fields.js";
import { requireShallow } from "../nesting.js";
import { readSampling } from "../sampling.js";
import type { ModelRequest } from "../types.js";
import { Audit } from "./audit.js";
import { readHistory, readSystem } from "./history.js";
import { readToolChoice, readTools } from "./tools.js";

/** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field */
export function readMessagesRequest(body: unknown): ModelRequest {
  const request = object(body, "the body");
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
    requested: readSampling(request, "max_tokens"),
    audit: audit.notes,
    wantsUsage: true,
    wantsTokens: false,
  };
}

function readThinking(value: unknown): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  const { type } = object(value, "thinking");
  if (type === "adaptive" || type === "enabled") return true;
  return type === "disabled" ? false : undefined;
}

function readStopSequences(value: unknown): string[] {
  return optionalArray(value, "stop_sequences").map((one, at) =>
    nonEmptyString(one, `stop_sequences[${at}]`),
  );
}
