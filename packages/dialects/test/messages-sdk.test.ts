/** The vendor's own client against what the dialect writes, over HTTP. Numbers are those of the front's checklist. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { type ErrorCode, FinishReason, MortiseError } from "@mortise/contracts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { messagesDialect } from "../src/index.js";

const ASK = { model: "any-alias", max_tokens: 64, messages: [{ role: "user" as const, content: "hi" }] };

const END: ReplyEnd = {
  finish: FinishReason.STOP,
  promptTokens: 1000,
  cachedTokens: 900,
  completionTokens: 42,
  reasoningTokens: 3,
};

/** What the server does with every request of a test. */
let answer: { parts: readonly ReplyPart[] } | { refusal: ErrorCode } | { fault: readonly ReplyPart[] };
let requests = 0;
let server: Server;
let client: Anthropic;

beforeAll(async () => {
  server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      requests++;
      const request = messagesDialect.read(JSON.parse(Buffer.concat(chunks).toString()));
      const writer = messagesDialect.writer({ turn: "trial-t1", model: "any-alias", createdMs: 0 }, request);
      if ("refusal" in answer) {
        const detail = { tokens: 9, limit: 8 };
        const error = new MortiseError({ code: answer.refusal, message: "m", detail });
        const { status, headers, body } = messagesDialect.refuse(error, "req_1");
        response.writeHead(status, { ...headers, "content-type": "application/json" }).end(body);
      } else if ("fault" in answer) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const error = new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "m" });
        response.end(writer.opening(1000) + writer.parts(answer.fault) + writer.failing(error));
      } else if (request.isStream) {
        response.writeHead(200, { "content-type": "text/event-stream" }).write(writer.opening(1000));
        for (const part of answer.parts) response.write(writer.parts([part]) + writer.keepAlive());
        response.end(writer.ending(END));
      } else {
        response.writeHead(200, { "content-type": "application/json" }).end(writer.whole(answer.parts, END));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  client = new Anthropic({ baseURL: `http://127.0.0.1:${port}`, apiKey: "x", maxRetries: 1 });
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

beforeEach(() => {
  requests = 0;
});

const FULL: readonly ReplyPart[] = [
  { kind: "reasoning", text: "hm " },
  { kind: "reasoning", text: "so" },
  { kind: "text", text: "\n\nHello " },
  { kind: "text", text: "there \n" },
  { kind: "call-start", call: 0, id: "call_0", name: "f" },
  { kind: "call-arguments", call: 0, text: '{"a": ' },
  { kind: "call-arguments", call: 0, text: "[2]}" },
  { kind: "call-end", call: 0, tokenEnd: 7 },
  { kind: "call-start", call: 1, id: "call_1", name: "g" },
  { kind: "call-end", call: 1, tokenEnd: 9 },
];

const MESSAGE = {
  id: "msg_trial-t1",
  type: "message",
  role: "assistant",
  model: "any-alias",
  content: [
    { type: "thinking", thinking: "hm so", signature: "trial-t1-0" },
    { type: "text", text: "\n\nHello there \n" },
    { type: "tool_use", id: "call_0", name: "f", input: { a: [2] } },
    { type: "tool_use", id: "call_1", name: "g", input: {} },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: {
    input_tokens: 100,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 900,
    output_tokens: 42,
  },
};

describe("the vendor's client", () => {
  test("[41-49] reads the stream as the message it is", async () => {
    answer = { parts: FULL };
    expect(await client.messages.stream(ASK).finalMessage()).toMatchObject(MESSAGE);
  });

  test("[53] reads the same from a whole message", async () => {
    answer = { parts: FULL };
    expect(await client.messages.create(ASK)).toMatchObject(MESSAGE);
  });

  test("[31] sends back what the reader takes for the same reply", async () => {
    answer = { parts: FULL };
    const { content } = await client.messages.stream(ASK).finalMessage();
    const { conversation } = messagesDialect.read({ messages: [{ role: "assistant", content }] });
    expect(conversation.messages).toEqual([
      {
        role: "assistant",
        text: "\n\nHello there \n",
        reasoning: "hm so",
        toolCalls: [
          { id: "call_0", name: "f", arguments: '{"a":[2]}' },
          { id: "call_1", name: "g", arguments: "{}" },
        ],
      },
    ]);
  });

  test.each<[code: ErrorCode, status: number, tries: number]>([
    ["MORTISE_PROVIDER_CONTEXT_LENGTH", 400, 1],
    ["MORTISE_PROVIDER_UNAUTHORIZED", 401, 1],
    ["MORTISE_PROVIDER_BUDGET", 403, 1],
    ["MORTISE_PROVIDER_NOT_FOUND", 404, 1],
    ["MORTISE_PROVIDER_TOO_LARGE", 413, 1],
    ["MORTISE_TRANSPORT_MAILBOX_FULL", 429, 2],
    ["MORTISE_TRANSPORT_INTERNAL", 500, 2],
    ["MORTISE_PROVIDER_ENGINE", 529, 2],
  ])("[56-64] stops or tries again as it should: %s", async (refusal, status, tries) => {
    answer = { refusal };
    const error = await client.messages.create(ASK).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(APIError);
    expect((error as APIError).status).toBe(status);
    expect(requests).toBe(tries);
  });

  test("[65] takes an error event for the failure of the reply", async () => {
    answer = { fault: FULL.slice(0, 3) };
    await expect(client.messages.stream(ASK).finalMessage()).rejects.toThrow("overloaded_error");
  });
});
