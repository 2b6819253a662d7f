/**
 * Owns how a failure looks to a client of OpenAI Responses, before its stream began and within it. Codex ends
 * on a 400 and asks again on every other status, 403 among them, so a spent budget is a 400 here.
 */
import type { ErrorCode, MortiseError } from "@mortise/contracts";
import { clientMessage, type ErrorShapes, OPENAI_SHAPES, refusal } from "../openai-error.js";
import type { Refusal } from "../types.js";

const SHAPES: ErrorShapes = {
  ...OPENAI_SHAPES,
  MORTISE_PROVIDER_BUDGET: { status: 400, type: "invalid_request_error", code: "session_budget_reached" },
};

/** Codes within a stream are a closed list to Codex: these end it at once, `server_error` is asked again. */
const STREAM_CODES: Readonly<Partial<Record<ErrorCode, string>>> = {
  MORTISE_PROVIDER_BAD_REQUEST: "invalid_prompt",
  MORTISE_PROVIDER_CONTEXT_LENGTH: "context_length_exceeded",
  MORTISE_PROVIDER_BUDGET: "insufficient_quota",
};

export function refuseResponses(error: MortiseError, requestId: string): Refusal {
  return refusal(error, requestId, SHAPES);
}

/** The `error` of a response that failed after it began. */
export function failure(error: MortiseError): { code: string; message: string } {
  return { code: STREAM_CODES[error.code] ?? "server_error", message: clientMessage(error, SHAPES) };
}
