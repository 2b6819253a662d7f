/** The vendor's own client against what the dialect writes, over HTTP. Numbers are those of the front's checklist. */
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chatDialect } from "../src/index.js";
import { CUT, call, cutCall, text } from "./reply-kit.js";
import { SdkServer } from "./sdk-server.js";

const ASK = {
  model: "any-alias",
  messages: [{ role: "user" as const, content: "hi" }],
  stream_options: { include_usage: true },
};
const PARTS = [text("a"), text("b"), ...call(0, "bash", '{"cmd"', ':"ls"}'), ...call(1, "bash", "{}")];

let server: SdkServer;
let client: OpenAI;

beforeAll(async () => {
  server = await SdkServer.start(chatDialect);
  client = new OpenAI({ baseURL: server.baseUrl, apiKey: "x", maxRetries: 1 });
});

afterAll(() => server.stop());

test("[79] [87] a stream adds up to the completion that is not streamed", async () => {
  server.play({ parts: PARTS });
  const streamed = await client.chat.completions.stream(ASK).finalChatCompletion();
  const { stream_options, ...whole } = ASK;
  expect(stream_options.include_usage).toBe(true);
  const completion = await client.chat.completions.create(whole);
  for (const { choices, usage } of [streamed, completion]) {
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    expect(choices[0]?.message.content).toBe("ab");
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: "call_0", type: "function", function: { name: "bash", arguments: '{"cmd":"ls"}' } },
      { id: "call_1", type: "function", function: { name: "bash", arguments: "{}" } },
    ]);
    expect(usage?.total_tokens).toBe(120);
  }
});

test("[83] a reply that was cut ends with length", async () => {
  server.play({ parts: cutCall(0, "bash", '{"cmd": "ls'), end: CUT });
  const chunks: (string | null | undefined)[] = [];
  for await (const chunk of await client.chat.completions.create({ ...ASK, stream: true }))
    chunks.push(chunk.choices[0]?.finish_reason);
  expect(chunks.filter(Boolean)).toEqual(["length"]);
});

test("[90] a stream that fails is an error, never a reply", async () => {
  server.play({ fault: [text("a")] });
  await expect(client.chat.completions.stream(ASK).finalChatCompletion()).rejects.toThrow(
    "Service unavailable",
  );
});

test.each([
  ["MORTISE_PROVIDER_ENGINE", 503, 2],
  ["MORTISE_PROVIDER_CONTEXT_LENGTH", 400, 1],
  ["MORTISE_PROVIDER_BUDGET", 403, 1],
  ["MORTISE_PROVIDER_UNAUTHORIZED", 401, 1],
] as const)("[91] %s is %i, asked %i times", async (refusal, status, requests) => {
  server.play({ refusal });
  const { stream_options: _, ...whole } = ASK;
  const error = await client.chat.completions.create(whole).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect(error).toMatchObject({ status, requestID: "req_1" });
  expect(server.requests).toBe(requests);
});
