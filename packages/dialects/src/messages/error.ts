/**
 * Owns how a failure looks to a harness that speaks Anthropic: a status that makes its client compact, retry
 * or stop, and the error object it parses.
 *
 * A passing fault is 529, 500 or 429, never a 400: Claude Code degrades its request on a 400, and falls back to
 * no streaming on a 404. What must end the trial says `x-should-retry: false`, since Claude Code retries even
 * a 401 without it. An overflow says nothing about retries: the client compacts and asks anew.
 */
import type { ErrorCode, MortiseError } from "@mortise/contracts";
import type { Refusal } from "../types.js";

interface Shape {
  readonly status: number;
  readonly type: string;
  readonly client: "compact" | "retry" | "stop";
}

const OVERLOADED: Shape = { status: 529, type: "overloaded_error", client: "retry" };
/** Ours and lasting, or unknown: retried, because a restart or another replica may mend it. */
const INTERNAL: Shape = { status: 500, type: "api_error", client: "retry" };

const SHAPES: Partial<Record<ErrorCode, Shape>> = {
  MORTISE_PROVIDER_BAD_REQUEST: { status: 400, type: "invalid_request_error", client: "stop" },
  MORTISE_PROVIDER_CONTEXT_LENGTH: { status: 400, type: "invalid_request_error", client: "compact" },
  MORTISE_PROVIDER_UNAUTHORIZED: { status: 401, type: "authentication_error", client: "stop" },
  MORTISE_PROVIDER_LISTENER: { status: 403, type: "permission_error", client: "stop" },
  MORTISE_PROVIDER_BUDGET: { status: 403, type: "permission_error", client: "stop" },
  MORTISE_PROVIDER_NOT_FOUND: { status: 404, type: "not_found_error", client: "stop" },
  MORTISE_PROVIDER_TOO_LARGE: { status: 413, type: "request_too_large", client: "stop" },
  MORTISE_TRANSPORT_MAILBOX_FULL: { status: 429, type: "rate_limit_error", client: "retry" },
};

/** Said of everything that is not the request's fault: a sandbox learns nothing of our side. */
const WORDS: Record<string, string> = {
  overloaded_error: "Service unavailable: the model is overloaded or away for a moment. Try again.",
  api_error: "The model failed to answer. Try again.",
  rate_limit_error: "Too many requests at once. Try again later.",
};

/** Status, headers and body for an error before the reply began. */
export function messagesRefusal(error: MortiseError, requestId: string): Refusal {
  const { status } = shapeOf(error);
  const body = JSON.stringify({ type: "error", error: errorObject(error), request_id: requestId });
  return { status, headers: retryHeaders(error), body };
}

/** The error object of a refusal, and of a stream that fails after it began. */
export function errorObject(error: MortiseError): { type: string; message: string } {
  const { type, client } = shapeOf(error);
  if (client === "compact") return { type, message: overflowMessage(error) };
  return { type, message: WORDS[type] ?? error.message };
}

function shapeOf(error: MortiseError): Shape {
  return SHAPES[error.code] ?? (error.disposition === "retry" ? OVERLOADED : INTERNAL);
}

function retryHeaders(error: MortiseError): Record<string, string> {
  const { client } = shapeOf(error);
  if (client === "compact") return {};
  if (client === "stop") return { "x-should-retry": "false" };
  const seconds = Math.max(1, Math.ceil((error.retryAfterMs ?? 0) / 1000));
  return { "retry-after": String(seconds), "x-should-retry": "true" };
}

/** Harnesses recognise an overflow by these words and compact their history. */
function overflowMessage({ detail: { tokens, limit } }: MortiseError): string {
  if (typeof tokens !== "number" || typeof limit !== "number") return "prompt is too long";
  return `prompt is too long: ${tokens} tokens > ${limit} maximum`;
}
