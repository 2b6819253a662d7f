/** Refusals as clients of OpenAI Responses see them. Numbers are those of the front's checklist. */
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { responsesDialect } from "../src/index.js";

function refusal(code: ErrorCode, init: { detail?: Record<string, unknown>; retryAfterMs?: number } = {}) {
  const error = new MortiseError({ code, message: "engine at 10.0.0.7 said so.", ...init });
  const { status, headers, body } = responsesDialect.refuse(error, "req_1");
  return { status, headers, error: JSON.parse(body).error };
}

describe("[108] refusals before the stream", () => {
  test.each([
    ["MORTISE_PROVIDER_BAD_REQUEST", 400, "invalid_request"],
    ["MORTISE_PROVIDER_CONTEXT_LENGTH", 400, "context_length_exceeded"],
    ["MORTISE_PROVIDER_TOO_LARGE", 413, "request_too_large"],
    ["MORTISE_PROVIDER_UNAUTHORIZED", 401, "invalid_api_key"],
  ] as const)("%s is %i %s, for good", (code, status, expected) => {
    const refused = refusal(code);
    expect(refused).toMatchObject({ status, error: { code: expected, param: null } });
    expect(refused.headers).toEqual({ "x-should-retry": "false", "x-request-id": "req_1" });
  });

  test("a spent budget is a 400, the one status that ends Codex at once", () => {
    expect(refusal("MORTISE_PROVIDER_BUDGET")).toMatchObject({
      status: 400,
      error: { code: "session_budget_reached" },
    });
  });

  test.each(["MORTISE_PROVIDER_ENGINE", "MORTISE_POLICY_UNSUPPORTED"] as const)(
    "%s is a passing fault to a harness: 503, asked again, nothing of the inside",
    (code) => {
      const refused = refusal(code, { retryAfterMs: 2500, detail: { field: "engine.host" } });
      expect(refused).toMatchObject({
        status: 503,
        headers: { "retry-after": "3", "x-should-retry": "true" },
      });
      expect(JSON.stringify(refused.error)).not.toContain("10.0.0.7");
    },
  );

  test("an overflow says how long the context is and how long the request was", () => {
    const { error } = refusal("MORTISE_PROVIDER_CONTEXT_LENGTH", { detail: { tokens: 120, limit: 100 } });
    expect(error.message).toMatch(
      /maximum context length is 100 tokens.*120 tokens.*reduce the length of the messages/,
    );
  });

  test("a malformed field is named", () => {
    expect(refusal("MORTISE_PROVIDER_BAD_REQUEST", { detail: { field: "input[0]" } }).error).toEqual({
      message: expect.stringContaining("said so"),
      type: "invalid_request_error",
      param: "input[0]",
      code: "invalid_request",
    });
  });
});
