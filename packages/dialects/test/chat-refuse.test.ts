/** Refusals as clients of OpenAI Chat Completions see them. Numbers are those of the front's checklist. */
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { chatDialect } from "../src/index.js";

function refusal(code: ErrorCode, init: { detail?: Record<string, unknown>; retryAfterMs?: number } = {}) {
  const error = new MortiseError({ code, message: "engine at 10.0.0.7 said so.", ...init });
  const { status, headers, body } = chatDialect.refuse(error, "req_1");
  return { status, headers, error: JSON.parse(body).error };
}

test.each([
  ["MORTISE_PROVIDER_BAD_REQUEST", 400, "invalid_request_error", "invalid_request"],
  ["MORTISE_PROVIDER_CONTEXT_LENGTH", 400, "invalid_request_error", "context_length_exceeded"],
  ["MORTISE_PROVIDER_TOO_LARGE", 413, "invalid_request_error", "request_too_large"],
  ["MORTISE_PROVIDER_UNAUTHORIZED", 401, "authentication_error", "invalid_api_key"],
  ["MORTISE_PROVIDER_BUDGET", 403, "permission_error", "session_budget_reached"],
] as const)("[88] %s is %i with an error object, for good", (code, status, type, expected) => {
  expect(refusal(code, { detail: { field: "n" } })).toEqual({
    status,
    headers: { "x-should-retry": "false", "x-request-id": "req_1" },
    error: { message: expect.any(String), type, param: "n", code: expected },
  });
});

test("[89] an overflow has the words by which harnesses know it", () => {
  const { status, error } = refusal("MORTISE_PROVIDER_CONTEXT_LENGTH", {
    detail: { tokens: 120, limit: 100 },
  });
  expect(status).toBe(400);
  expect(error.code).toBe("context_length_exceeded");
  expect(error.message).toMatch(
    /^This model's maximum context length is 100 tokens\..*Please reduce the length of the messages\.$/,
  );
});

test.each(["MORTISE_PROVIDER_ENGINE", "MORTISE_POLICY_UNSUPPORTED"] as const)(
  "[91] %s is a passing fault to a harness: 503, asked again, nothing of the inside",
  (code) => {
    const { status, headers, error } = refusal(code, { detail: { host: "10.0.0.7" } });
    expect(status).toBe(503);
    expect(headers).toMatchObject({ "retry-after": "1", "x-should-retry": "true" });
    expect(error.type).toBe("server_error");
    expect(JSON.stringify(error)).not.toContain("10.0.0.7");
  },
);

test("[91] what a harness is told to wait is rounded up to whole seconds", () => {
  expect(refusal("MORTISE_PROVIDER_ENGINE", { retryAfterMs: 1001 }).headers["retry-after"]).toBe("2");
});
