/** Whatever JSON arrives, it is a request or a refusal that names a field. */
import { digestRequest } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { chatDialect } from "../src/index.js";
import { anyBody } from "./any-json.js";

const BODY = {
  model: "m",
  messages: [
    { role: "developer", content: "a" },
    { role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }] },
    {
      role: "assistant",
      content: null,
      reasoning_content: "a",
      reasoning: "a",
      thinking_blocks: [{ thinking: "a" }],
      tool_calls: [
        { id: "c", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "d", type: "custom", custom: { name: "g", input: "a" } },
      ],
    },
    { role: "tool", tool_call_id: "d", name: "g", content: [{ type: "text", text: "a" }] },
    { role: "tool", tool_call_id: "c", content: "a" },
  ],
  tools: [
    { type: "function", function: { name: "f", description: "d", parameters: { type: "object" } } },
    { type: "custom", custom: { name: "g", format: { type: "grammar", grammar: { definition: "a" } } } },
    { type: "web_search_preview" },
  ],
  tool_choice: { type: "function", function: { name: "f" } },
  stream_options: { include_usage: true },
  stop: ["a"],
  chat_template_kwargs: { enable_thinking: true },
  response_format: { type: "text" },
  temperature: 1,
  max_tokens: 5,
  n: 1,
  logprobs: true,
  stream: true,
};

test("the body that is varied is read", () => {
  expect(chatDialect.read(BODY).conversation.messages).toHaveLength(5);
});

test("any JSON is read or refused by name", () => {
  let read = 0;
  const runs = 2_000;
  fc.assert(
    fc.property(anyBody([BODY]), (body) => {
      try {
        const request = chatDialect.read(body);
        digestRequest(request.conversation, request.toolChoice);
        read++;
      } catch (error) {
        if (!(error instanceof MortiseError)) throw error;
        expect(error.code).toBe("MORTISE_PROVIDER_BAD_REQUEST");
        expect(typeof error.detail.field).toBe("string");
      }
    }),
    { numRuns: runs },
  );
  // Neither all nor none: the values reach what they are meant to reach.
  expect(read).toBeGreaterThan(runs / 10);
  expect(read).toBeLessThan((runs * 9) / 10);
});

test("nesting without end is refused", () => {
  let nested: unknown = [];
  for (let level = 0; level < 100_000; level++) nested = [nested];
  for (const body of [nested, { messages: nested }, { messages: [], tools: nested }])
    expect(() => chatDialect.read(body)).toThrow(MortiseError);
});
