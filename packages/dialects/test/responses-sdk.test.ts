/** The vendor's own client against what the dialect writes, over HTTP. Numbers are those of the front's checklist. */
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { responsesDialect } from "../src/index.js";
import { CUT, call, cutCall, reasoning, text } from "./reply-kit.js";
import { SdkServer } from "./sdk-server.js";

const ASK = {
  model: "any-alias",
  input: "hi",
  tools: [{ type: "custom" as const, name: "patch" }],
};
const PARTS = [
  reasoning("why"),
  text("a"),
  text("b"),
  ...call(0, "bash", '{"cmd"', ':"ls"}'),
  ...call(1, "patch", '{"input":"p"}'),
];

let server: SdkServer;
let client: OpenAI;

beforeAll(async () => {
  server = await SdkServer.start(responsesDialect);
  client = new OpenAI({ baseURL: server.baseUrl, apiKey: "x", maxRetries: 1 });
});

afterAll(() => server.stop());

test("[100] [106] a stream adds up to the response that is not streamed", async () => {
  server.play({ parts: PARTS });
  const streamed = await client.responses.stream(ASK).finalResponse();
  const whole = await client.responses.create(ASK);
  expect(streamed.output.map(({ type }) => type)).toEqual([
    "reasoning",
    "message",
    "function_call",
    "custom_tool_call",
  ]);
  expect(JSON.parse(JSON.stringify(streamed.output))).toMatchObject(JSON.parse(JSON.stringify(whole.output)));
  for (const response of [streamed, whole]) {
    expect(response.output_text).toBe("ab");
    expect(response.usage?.total_tokens).toBe(120);
  }
});

test("[107] a reply that was cut is read to its end, as incomplete", async () => {
  server.play({ parts: [text("a"), ...cutCall(0, "bash", '{"cmd": "ls')], end: CUT });
  for (const response of [
    await client.responses.stream(ASK).finalResponse(),
    await client.responses.create(ASK),
  ]) {
    expect(response).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
    });
    expect(response.output.at(-1)).toMatchObject({ type: "function_call", arguments: '{"cmd": "ls' });
  }
});

test("[108] a stream that fails is an error, never a reply", async () => {
  server.play({ fault: [text("a")] });
  await expect(client.responses.stream(ASK).finalResponse()).rejects.toThrow("Service unavailable");
});

test.each([
  ["MORTISE_PROVIDER_ENGINE", 503, 2],
  ["MORTISE_PROVIDER_CONTEXT_LENGTH", 400, 1],
  ["MORTISE_PROVIDER_BUDGET", 400, 1],
  ["MORTISE_PROVIDER_UNAUTHORIZED", 401, 1],
] as const)("[108] %s is %i, asked %i times", async (refusal, status, requests) => {
  server.play({ refusal });
  const error = await client.responses.create(ASK).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status, requestID: "req_1" });
  expect(server.requests).toBe(requests);
});
