/** Whatever JSON arrives, it is a request or a refusal that names a field. */
import { MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { chatDialect } from "../src/index.js";
import { endlessNesting, readsOrRefusesByName } from "./any-body.js";

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

test("any JSON is read or refused by name", () => readsOrRefusesByName(chatDialect, [BODY]));

test("nesting without end is refused", () => {
  const nested = endlessNesting();
  for (const body of [nested, { messages: nested }, { messages: [], tools: nested }])
    expect(() => chatDialect.read(body)).toThrow(MortiseError);
});
