/** Whatever JSON arrives, it is a request or a refusal that names a field. */
import { MortiseError } from "@mortise/contracts";
import { expect, test } from "vitest";
import { responsesDialect } from "../src/index.js";
import { endlessNesting, readsOrRefusesByName } from "./any-body.js";

const BODY = {
  model: "m",
  instructions: [{ type: "input_text", text: "a" }],
  input: [
    { role: "developer", content: "a" },
    { type: "message", role: "user", content: [{ type: "input_text", text: "a" }, { type: "input_image" }] },
    { type: "reasoning", id: "rs_t1_0", summary: [{ type: "summary_text", text: "a" }], content: null },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "a" }] },
    { type: "function_call", call_id: "c", name: "f", namespace: "n", arguments: "{}" },
    { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "a" }] },
    { type: "custom_tool_call", call_id: "d", name: "g", input: "a" },
    { type: "custom_tool_call_output", call_id: "d", output: "a" },
    { type: "local_shell_call", call_id: "e", action: { command: ["ls"] } },
    { type: "local_shell_call_output", call_id: "e", output: "a" },
    { type: "web_search_call", id: "w" },
  ],
  tools: [
    { type: "function", name: "f", description: "d", parameters: { type: "object" } },
    { type: "custom", name: "g", format: { type: "grammar", syntax: "lark", definition: "a" } },
    { type: "namespace", name: "n", tools: [{ type: "function", name: "f" }] },
    { type: "web_search" },
  ],
  tool_choice: { type: "function", name: "f" },
  reasoning: { effort: "low" },
  text: { format: { type: "text" } },
  temperature: 1,
  max_output_tokens: 5,
  previous_response_id: null,
  stream: true,
};

test("the body that is varied is read", () => {
  expect(responsesDialect.read(BODY).conversation.messages).toHaveLength(8);
});

test("any JSON is read or refused by name", () => readsOrRefusesByName(responsesDialect, [BODY]));

test("nesting without end is refused", () => {
  const nested = endlessNesting();
  for (const body of [nested, { input: nested }, { input: "a", tools: nested }])
    expect(() => responsesDialect.read(body)).toThrow(MortiseError);
});
