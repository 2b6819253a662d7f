/** Settings of requests of Anthropic Messages, and what is refused. Numbers are those of the front's checklist. */
import { describe, expect, test } from "vitest";
import { messagesDialect } from "../src/index.js";
import { assistant, bodyOf, read, result, text, use, user } from "./messages-body.js";
import { refusedField } from "./refused.js";

const refused = (fields: object) => refusedField(messagesDialect, bodyOf(fields));

describe("settings", () => {
  test("[32] thinking is asked for, declined, or left to the run's policy", () => {
    const asked = (thinking: unknown) => read({ thinking }).wantsReasoning;
    expect(asked({ type: "adaptive", display: "omitted" })).toBe(true);
    expect(asked({ type: "enabled", budget_tokens: 31999 })).toBe(true);
    expect(asked({ type: "disabled" })).toBe(false);
    expect(asked(undefined)).toBeUndefined();
    expect(asked({ type: "of-the-future" })).toBeUndefined();
  });

  test("[33] what does not concern the policy is ignored", () => {
    const plain = read({});
    const loaded = read({
      output_config: { effort: "high" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      service_tier: "auto",
      betas: ["x"],
      container: null,
      mcp_servers: [],
      a_new_field: { deep: [1] },
    });
    expect(loaded).toEqual(plain);
  });

  test("[34] metadata is ignored, its user id a JSON string or anything else", () => {
    for (const metadata of [{ user_id: '{"session_id":"s"}' }, { user_id: 3 }, null, "x"])
      expect(read({ metadata })).toEqual(read({}));
  });

  test("[35] the output limit is recorded as asked, to be clamped by the policy; it may be absent", () => {
    expect(read({ max_tokens: 32000 }).requested).toEqual({ maxTokens: 32000 });
    expect(read({ max_tokens: 128000 }).requested).toEqual({ maxTokens: 128000 });
    expect(read({ max_tokens: 1e300 }).requested).toEqual({ maxTokens: 2 ** 31 - 1 });
    expect(read({ max_tokens: undefined }).requested).toEqual({});
  });

  test("[36] tools with a schema are offered, strict, eager or not", () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    const { conversation } = read({
      tools: [
        { name: "f", description: "does f", input_schema: schema, strict: true },
        { type: "custom", name: "g", input_schema: schema, eager_input_streaming: true },
        { name: "h" },
      ],
    });
    expect(conversation.tools).toEqual([
      { name: "f", description: "does f", parameters: schema },
      { name: "g", description: "", parameters: schema },
      { name: "h", description: "", parameters: null },
    ]);
  });

  test("[36] hosted tools have no schema: they are named, not offered", () => {
    const { conversation, hostedTools, audit } = read({
      tools: [
        { type: "web_search_20250305", name: "web_search", max_uses: 8 },
        { name: "f", input_schema: {} },
      ],
    });
    expect(conversation.tools.map((tool) => tool.name)).toEqual(["f"]);
    expect(hostedTools).toEqual(["web_search_20250305"]);
    expect(audit).toEqual([{ what: "hosted-tool-ignored", field: "tools[0]" }]);
  });

  test("[36] a deferred tool is offered once a tool reference names it", () => {
    const tools = [
      { name: "f", input_schema: {} },
      { name: "g", input_schema: {}, defer_loading: true },
    ];
    const asked = (name: string) =>
      read({
        tools,
        messages: [
          user(text("a")),
          assistant(use("c1")),
          user(result("c1", [{ type: "tool_reference", tool_name: name }])),
        ],
      });
    expect(asked("other").conversation.tools.map((tool) => tool.name)).toEqual(["f"]);
    expect(asked("other").audit).toContainEqual({ what: "deferred-tool-withheld", field: "tools[1]" });
    expect(asked("g").conversation.tools.map((tool) => tool.name)).toEqual(["f", "g"]);
  });

  test("[37] tool choice is auto, any, tool or none; a limit to one call is noted", () => {
    const asked = (tool_choice: unknown) => read({ tool_choice }).toolChoice;
    expect(asked(undefined)).toEqual({ mode: "auto" });
    expect(asked({ type: "auto" })).toEqual({ mode: "auto" });
    expect(asked({ type: "any" })).toEqual({ mode: "required" });
    expect(asked({ type: "none" })).toEqual({ mode: "none" });
    expect(asked({ type: "tool", name: "f" })).toEqual({ mode: "tool", name: "f" });
    expect(read({ tool_choice: { type: "auto", disable_parallel_tool_use: true } }).audit).toEqual([
      { what: "parallel-limit-ignored", field: "tool_choice.disable_parallel_tool_use" },
    ]);
  });

  test("[38] stop sequences and sampling values are read", () => {
    const { stopSequences, requested } = read({
      stop_sequences: ["END", "\n\n"],
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
    });
    expect(stopSequences).toEqual(["END", "\n\n"]);
    expect(requested).toEqual({ temperature: 0.5, topP: 0.9, topK: 40, maxTokens: 100 });
  });

  test("[39] a reply is streamed only when asked for", () => {
    expect(read({ stream: true }).isStream).toBe(true);
    expect(read({ stream: false }).isStream).toBe(false);
    expect(read({}).isStream).toBe(false);
  });
});

describe("refused", () => {
  test.each<[field: string, fields: object]>([
    ["messages", { messages: undefined }],
    ["messages", { messages: [] }],
    ["messages", { messages: "hi" }],
    ["messages[0]", { messages: ["hi"] }],
    ["messages[0].role", { messages: [{ role: "tool", content: "x" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 3 }] }],
    ["messages[0].content[0]", { messages: [user("x")] }],
    ["messages[0].content[0].type", { messages: [user({})] }],
    ["messages[0].content[0].text", { messages: [user({ type: "text" })] }],
    ["messages[0].content[0].type", { messages: [user(use("c1"))] }],
    ["messages[0].content[0].type", { messages: [assistant(result("c1"))] }],
    ["messages[0].content[0].tool_use_id", { messages: [user({ type: "tool_result" })] }],
    ["messages[0].content[0].id", { messages: [assistant({ type: "tool_use", name: "f" })] }],
    ["messages[0].content[0].name", { messages: [assistant({ type: "tool_use", id: "c1", name: "" })] }],
    ["system", { system: 3 }],
    ["tools", { tools: {} }],
    ["tools[0].name", { tools: [{ input_schema: {} }] }],
    ["tools[0].type", { tools: [{ type: 3, name: "f" }] }],
    ["tools[0].input_schema", { tools: [{ name: "f", input_schema: [] }] }],
    ["tool_choice.type", { tool_choice: { type: "some" } }],
    ["tool_choice.name", { tool_choice: { type: "tool" } }],
    ["thinking", { thinking: "on" }],
    ["stop_sequences[0]", { stop_sequences: [""] }],
    ["max_tokens", { max_tokens: "100" }],
    ["temperature", { temperature: "hot" }],
  ])("[57] only truly bad input, by the name of the field: %s", (field, fields) => {
    expect(refused(fields)).toBe(field);
  });

  test("[57] endless nesting, before it ends the stack", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`) as object;
    const bodies = [
      { messages: [assistant(use("c1", deep))] },
      { messages: [user({ type: "new_kind", deep })] },
      { tools: [{ name: "f", input_schema: deep }] },
    ];
    expect(bodies.map((body) => refused(body))).toEqual(["messages", "messages", "tools"]);
    let nested: unknown = "x";
    for (let level = 0; level < 50_000; level++)
      nested = [{ type: "document", source: { type: "content", content: nested } }];
    expect(refused({ messages: [{ role: "user", content: nested }] })).toBe("messages");
  });
});
