/** Refusals of Anthropic Messages, and its token count. Numbers are those of the front's checklist. */
import { ERROR_CATALOGUE, type ErrorCode, MortiseError, type MortiseErrorInit } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { messagesDialect, tokenCountBody } from "../src/index.js";
import { eventsOf } from "./messages-client.js";

function refuse(code: ErrorCode, more: Partial<MortiseErrorInit> = {}) {
  const error = new MortiseError({ code, message: "Of this request.", ...more });
  const { status, headers, body } = messagesDialect.refuse(error, "req_7");
  return { status, headers, body: JSON.parse(body) as { error: { type: string; message: string } } };
}

const STOP = { "x-should-retry": "false" };

test("[56] the body is an error with a type, a message and the request's id", () => {
  const { body } = refuse("MORTISE_PROVIDER_BAD_REQUEST", { message: "messages is empty." });
  expect(body).toEqual({
    type: "error",
    error: {
      type: "invalid_request_error",
      message: "A model request is malformed. messages is empty.",
    },
    request_id: "req_7",
  });
});

test("[57] no passing fault is a 400, for which clients degrade their request", () => {
  const ofTheRequest = ["MORTISE_PROVIDER_BAD_REQUEST", "MORTISE_PROVIDER_CONTEXT_LENGTH"];
  for (const code of Object.keys(ERROR_CATALOGUE) as ErrorCode[])
    expect([code, refuse(code).status === 400]).toEqual([code, ofTheRequest.includes(code)]);
});

test("[58] an overflow is worded so that clients compact, and says nothing about retries", () => {
  const overflow = { message: "Another protocol's words.", detail: { tokens: 70_000, limit: 65_536 } };
  const { status, headers, body } = refuse("MORTISE_PROVIDER_CONTEXT_LENGTH", overflow);
  expect([status, headers]).toEqual([400, {}]);
  expect(body.error).toEqual({
    type: "invalid_request_error",
    message: "prompt is too long: 70000 tokens > 65536 maximum",
  });
  expect(refuse("MORTISE_PROVIDER_CONTEXT_LENGTH").body.error.message).toBe("prompt is too long");
});

test("[59] an output limit beyond the window is no error: it is recorded, and clamped by the policy", () => {
  const { requested } = messagesDialect.read({
    max_tokens: 128_000,
    messages: [{ role: "user", content: "hi" }],
  });
  expect(requested.maxTokens).toBe(128_000);
});

describe("[60] what ends a trial or was never there", () => {
  test("a token that is not valid, or no longer: 401, and no retry", () => {
    const { status, headers, body } = refuse("MORTISE_PROVIDER_UNAUTHORIZED");
    expect([status, headers, body.error.type]).toEqual([401, STOP, "authentication_error"]);
  });

  test("an unknown route: 404", () => {
    const { status, headers, body } = refuse("MORTISE_PROVIDER_NOT_FOUND");
    expect([status, headers, body.error.type]).toEqual([404, STOP, "not_found_error"]);
  });

  test("404 is nothing else, as it makes clients fall back to no streaming", () => {
    for (const code of Object.keys(ERROR_CATALOGUE) as ErrorCode[])
      if (code !== "MORTISE_PROVIDER_NOT_FOUND") expect(refuse(code).status).not.toBe(404);
  });
});

test("[61] a body over the limit: 413, and no retry", () => {
  const { status, headers, body } = refuse("MORTISE_PROVIDER_TOO_LARGE");
  expect([status, headers, body.error.type]).toEqual([413, STOP, "request_too_large"]);
});

test("[62] too many requests at once: 429, and when to come again", () => {
  const { status, headers, body } = refuse("MORTISE_TRANSPORT_MAILBOX_FULL", { retryAfterMs: 2_100 });
  expect([status, body.error.type]).toEqual([429, "rate_limit_error"]);
  expect(headers).toEqual({ "retry-after": "3", "x-should-retry": "true" });
});

test("[63] passing faults are 529 with a time to come again, lasting ones of ours 500", () => {
  for (const code of ["MORTISE_PROVIDER_ENGINE", "MORTISE_TRANSPORT_UNAVAILABLE"] as const) {
    const { status, headers, body } = refuse(code);
    expect([status, body.error.type]).toEqual([529, "overloaded_error"]);
    expect(headers).toEqual({ "retry-after": "1", "x-should-retry": "true" });
  }
  const { status, headers, body } = refuse("MORTISE_TRANSPORT_INTERNAL");
  expect([status, body.error.type]).toEqual([500, "api_error"]);
  expect(headers["x-should-retry"]).toBe("true");
});

test("[64] a spent budget ends the trial at once: 403, no retry, no degraded request", () => {
  const { status, headers, body } = refuse("MORTISE_PROVIDER_BUDGET");
  expect([status, headers, body.error.type]).toEqual([403, STOP, "permission_error"]);
});

test("[65] the same errors in a stream are an event", () => {
  const request = messagesDialect.read({ messages: [{ role: "user", content: "hi" }] });
  const writer = messagesDialect.writer({ turn: "t1", model: "m", createdMs: 0 }, request);
  const detail = { tokens: 9, limit: 8 };
  const error = new MortiseError({ code: "MORTISE_PROVIDER_CONTEXT_LENGTH", message: "x", detail });
  expect(eventsOf(writer.failing(error))).toEqual([
    {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 9 tokens > 8 maximum" },
    },
  ]);
});

test("what fails on our side is not told", () => {
  const secret = { message: "nats://10.0.0.7 said no to run-7", cause: new Error("EACCES /var/lib/mortise") };
  for (const [code, row] of Object.entries(ERROR_CATALOGUE) as [ErrorCode, { meaning: string }][]) {
    if (code.startsWith("MORTISE_PROVIDER") && code !== "MORTISE_PROVIDER_ENGINE") continue;
    const { message } = refuse(code, secret).body.error;
    for (const told of [secret.message, secret.cause.message, row.meaning])
      expect(message).not.toContain(told);
  }
});

test("[66] a token count is asked without an output limit, and answered with one number", () => {
  const body = {
    model: "m",
    system: "s",
    messages: [{ role: "user", content: "hi" }],
    tools: [{ name: "f", input_schema: {} }],
    thinking: { type: "enabled", budget_tokens: 1024 },
  };
  const { conversation, requested } = messagesDialect.read(body);
  expect(conversation).toEqual(messagesDialect.read({ ...body, max_tokens: 5 }).conversation);
  expect(requested).toEqual({});
  expect(JSON.parse(tokenCountBody(1234))).toEqual({ input_tokens: 1234 });
});
