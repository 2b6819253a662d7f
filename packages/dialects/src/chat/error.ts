/**
 * Owns how a failure looks to a harness that speaks OpenAI: the status that makes its client do the right
 * thing (retry on 5xx, never on 4xx) and the error body it parses. A passing fault is never a 400: harnesses
 * degrade their requests on it.
 */
import type { ErrorCode, MortiseError } from "@mortise/contracts";
import type { Refusal } from "../types.js";

interface Shape {
  readonly status: number;
  readonly type: string;
  readonly code: string;
}

const SHAPES: Partial<Record<ErrorCode, Shape>> = {
  MORTISE_PROVIDER_BAD_REQUEST: { status: 400, type: "invalid_request_error", code: "invalid_request" },
  MORTISE_PROVIDER_CONTEXT_LENGTH: {
    status: 400,
    type: "invalid_request_error",
    code: "context_length_exceeded",
  },
  MORTISE_PROVIDER_TOO_LARGE: { status: 413, type: "invalid_request_error", code: "request_too_large" },
  MORTISE_PROVIDER_UNAUTHORIZED: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  MORTISE_PROVIDER_BUDGET: { status: 403, type: "permission_error", code: "session_budget_reached" },
};

const TRANSIENT: Shape = { status: 503, type: "server_error", code: "temporarily_unavailable" };
const RETRY_AFTER_SECONDS = 1;

/** Status, headers and body for an error before the reply began. */
export function errorReply(error: MortiseError): Refusal {
  const shape = SHAPES[error.code] ?? TRANSIENT;
  const isTransient = shape === TRANSIENT;
  return {
    status: shape.status,
    headers: isTransient
      ? { "retry-after": String(RETRY_AFTER_SECONDS), "x-should-retry": "true" }
      : { "x-should-retry": "false" },
    body: errorBody(error),
  };
}

/** The error object; also the last event of a stream that fails after it began. */
export function errorBody(error: MortiseError): string {
  const shape = SHAPES[error.code] ?? TRANSIENT;
  // What a sandbox may read: its own mistakes by name, of our side nothing but that it may try again.
  const message = shape === TRANSIENT ? "The model is temporarily unavailable. Try again." : error.message;
  const field = error.detail.field;
  return JSON.stringify({
    error: { message, type: shape.type, param: typeof field === "string" ? field : null, code: shape.code },
  });
}
