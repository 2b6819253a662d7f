/**
 * Owns how a failure looks to a client that speaks OpenAI: the status that makes it do the right thing (retry
 * on 5xx, never on 4xx) and the error body it parses. A passing fault is never a 400: harnesses degrade their
 * requests on it. What differs between the two protocols is said by their own error.ts.
 */
import type { ErrorCode, MortiseError } from "@mortise/contracts";
import type { Refusal } from "./types.js";

export interface ErrorShape {
  readonly status: number;
  readonly type: string;
  readonly code: string;
}

export type ErrorShapes = Readonly<Partial<Record<ErrorCode, ErrorShape>>>;

export const OPENAI_SHAPES: ErrorShapes = {
  MORTISE_PROVIDER_BAD_REQUEST: { status: 400, type: "invalid_request_error", code: "invalid_request" },
  MORTISE_PROVIDER_CONTEXT_LENGTH: {
    status: 400,
    type: "invalid_request_error",
    code: "context_length_exceeded",
  },
  MORTISE_PROVIDER_NOT_FOUND: { status: 404, type: "invalid_request_error", code: "not_found" },
  MORTISE_PROVIDER_TOO_LARGE: { status: 413, type: "invalid_request_error", code: "request_too_large" },
  MORTISE_PROVIDER_UNAUTHORIZED: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  MORTISE_PROVIDER_LISTENER: { status: 403, type: "permission_error", code: "wrong_listener" },
  MORTISE_PROVIDER_BUDGET: { status: 403, type: "permission_error", code: "session_budget_reached" },
};

const TRANSIENT: ErrorShape = { status: 503, type: "server_error", code: "temporarily_unavailable" };
const RETRY_AFTER_SECONDS = 1;

/** Status, headers and body for an error before the reply began. */
export function refusal(error: MortiseError, requestId: string, shapes: ErrorShapes): Refusal {
  const shape = shapes[error.code];
  const retryHeaders = { "retry-after": retryAfterSeconds(error), "x-should-retry": "true" };
  return {
    status: (shape ?? TRANSIENT).status,
    headers: {
      ...(shape === undefined ? retryHeaders : { "x-should-retry": "false" }),
      ...(requestId !== "" && { "x-request-id": requestId }),
    },
    body: JSON.stringify({ error: errorObject(error, shapes) }),
  };
}

export function errorObject(error: MortiseError, shapes: ErrorShapes) {
  const { type, code } = shapes[error.code] ?? TRANSIENT;
  const { field } = error.detail;
  return {
    message: clientMessage(error, shapes),
    type,
    param: typeof field === "string" ? field : null,
    code,
  };
}

/** What a sandbox may read: its own mistakes by name, of our side nothing but that it may try again. */
export function clientMessage(error: MortiseError, shapes: ErrorShapes): string {
  // In a stream there is no status: pi tries again only where the words say so.
  if (!shapes[error.code])
    return "Service unavailable: the model is overloaded or away for a moment. Try again.";
  return error.code === "MORTISE_PROVIDER_CONTEXT_LENGTH" ? overflowMessage(error) : error.message;
}

/** Harnesses recognise an overflow by these words, and compact their history. */
function overflowMessage({ detail, message }: MortiseError): string {
  const { tokens, limit } = detail;
  if (typeof tokens !== "number" || typeof limit !== "number") return message;
  return (
    `This model's maximum context length is ${limit} tokens. However, your messages resulted in ` +
    `${tokens} tokens. Please reduce the length of the messages.`
  );
}

function retryAfterSeconds({ retryAfterMs }: MortiseError): string {
  return String(
    retryAfterMs === undefined ? RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(retryAfterMs / 1000)),
  );
}
