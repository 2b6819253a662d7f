/** Requests of Anthropic Messages, read into conversations. Numbers are those of the front's checklist. */
import { digestRequest } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { type ModelRequest, messagesDialect } from "../src/index.js";

const HEADER = "x-anthropic-billing-header: cc_version=1.0.abc; cc_entrypoint=cli;";

const read = (fields: object): ModelRequest =>
  messagesDialect.read({
    model: "m",
    max_tokens: 100,
    messages: [{ role: "user", content: "hi" }],
    ...fields,
  });
const messagesOf = (messages: unknown, fields: object = {}) =>
  read({ messages, ...fields }).conversation.messages;
const user = (...content: unknown[]) => ({ role: "user", content });
const assistant = (...content: unknown[]) => ({ role: "assistant", content });
const text = (value: string) => ({ type: "text", text: value });
const use = (id: string, input: unknown = {}) => ({ type: "tool_use", id, name: "f", input });
const result = (id: string, content?: unknown, more: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  ...(content !== undefined && { content }),
  ...more,
});

function refused(fields: object): { message: string; field: unknown } {
  try {
    read(fields);
  } catch (error) {
    expect(error).toBeInstanceOf(MortiseError);
    const { code, message, detail } = error as MortiseError;
    expect(code).toBe("MORTISE_PROVIDER_BAD_REQUEST");
    return { message, field: detail.field };
  }
  throw new Error("the request was read");
}

describe("the prompt", () => {
  test("[22] the system prompt is a string or an array of blocks", () => {
    const expected = { role: "system", text: "be brief" };
    expect(messagesOf([user(text("hi"))], { system: "be brief" })[0]).toEqual(expected);
    const blocks = [text("be "), { ...text("brief"), cache_control: { type: "ephemeral" } }];
    expect(messagesOf([user(text("hi"))], { system: blocks })[0]).toEqual(expected);
    for (const system of [undefined, null, "", []])
      expect(messagesOf([user(text("hi"))], { system })).toEqual([{ role: "user", text: "hi" }]);
  });

  test("[23] a billing header block is dropped, whatever its nonce, and noted", () => {
    const asked = (header: string) => read({ system: [text(header), text("be brief")] });
    const { conversation, audit } = asked(HEADER);
    expect(conversation.messages[0]).toEqual({ role: "system", text: "be brief" });
    expect(audit).toEqual([{ what: "volatile-header-dropped", field: "system[0]" }]);
    expect(asked(HEADER.replace("abc", "def")).conversation).toEqual(conversation);
    const joined = read({ system: `${HEADER}\nbe brief` });
    expect(joined.conversation).toEqual(conversation);
    expect(joined.audit).toEqual([{ what: "volatile-header-dropped", field: "system" }]);
  });

  test("[24] content is a string or blocks, and the two are equal", () => {
    expect(messagesOf([{ role: "user", content: "hi" }])).toEqual(messagesOf([user(text("h"), text("i"))]));
    expect(messagesOf([user(), { role: "assistant", content: "" }])).toEqual([
      { role: "user", text: "" },
      { role: "assistant", text: "", reasoning: "", toolCalls: [] },
    ]);
  });

  test("[25] system messages stay where they are", () => {
    const messages = messagesOf(
      [
        user(text("a")),
        { role: "system", content: [text("late")] },
        assistant(text("b")),
        { role: "system", content: "later" },
      ],
      { system: "first" },
    );
    expect(messages.map((message) => [message.role, message.text])).toEqual([
      ["system", "first"],
      ["user", "a"],
      ["system", "late"],
      ["assistant", "b"],
      ["system", "later"],
    ]);
  });

  test("[26] consecutive messages of one role are one; system messages stay apart", () => {
    const messages = messagesOf([
      user(text("a")),
      { role: "user", content: "b\n" },
      user(text("c")),
      assistant({ type: "thinking", thinking: "t" }, text("x")),
      assistant(text("y"), use("c1")),
      { role: "system", content: "s1" },
      { role: "system", content: "s2" },
    ]);
    expect(messages).toEqual([
      { role: "user", text: "a\nb\nc" },
      {
        role: "assistant",
        text: "xy",
        reasoning: "t",
        toolCalls: [{ id: "c1", name: "f", arguments: "{}" }],
      },
      { role: "system", text: "s1" },
      { role: "system", text: "s2" },
    ]);
  });

  test("[40] the last message may be a system message, or the beginning of a reply, which is context", () => {
    expect(messagesOf([user(text("a")), { role: "system", content: "s" }]).at(-1)).toEqual({
      role: "system",
      text: "s",
    });
    expect(messagesOf([user(text("a")), { role: "assistant", content: "The answer is" }]).at(-1)).toEqual({
      role: "assistant",
      text: "The answer is",
      reasoning: "",
      toolCalls: [],
    });
  });
});

describe("blocks", () => {
  test("[27] text, thinking and calls make one assistant message", () => {
    const [, reply] = messagesOf([
      user(text("a")),
      assistant(
        { type: "thinking", thinking: "one ", signature: "t1-0" },
        text("x"),
        { type: "thinking", thinking: "two", signature: "" },
        use("c1", { a: 1 }),
        text("y"),
      ),
    ]);
    expect(reply).toEqual({
      role: "assistant",
      text: "xy",
      reasoning: "one two",
      toolCalls: [{ id: "c1", name: "f", arguments: '{"a":1}' }],
    });
  });

  test("[27] a signature of thinking may be anything or absent", () => {
    const withSignature = (signature?: unknown) =>
      read({ messages: [user(text("a")), assistant({ type: "thinking", thinking: "t", signature })] });
    const plain = withSignature();
    for (const signature of ["", "trial-t1-0", null, 3]) expect(withSignature(signature)).toEqual(plain);
  });

  test("[27] redacted thinking has no text, and is noted", () => {
    const { conversation, audit } = read({
      messages: [user(text("a")), assistant({ type: "redacted_thinking", data: "opaque" }, text("b"))],
    });
    expect(conversation.messages[1]).toMatchObject({ text: "b", reasoning: "" });
    expect(audit).toEqual([{ what: "redacted-reasoning-dropped", field: "messages[1].content[0]" }]);
  });

  test("[27] images and documents become a short text, and are noted", () => {
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    const pdf = { type: "document", source: { type: "url", url: "https://example.org/a.pdf" } };
    const { conversation, audit } = read({
      messages: [
        user(text("see "), image, pdf),
        assistant(use("c1")),
        user(result("c1", [text("out "), image])),
      ],
    });
    expect(conversation.messages.map((message) => message.text)).toEqual([
      "see [image omitted][file omitted]",
      "",
      "out [image omitted]",
    ]);
    expect(audit).toEqual([
      { what: "image-replaced", field: "messages[0].content[1]" },
      { what: "document-replaced", field: "messages[0].content[2]" },
      { what: "image-replaced", field: "messages[2].content[0].content[1]" },
    ]);
  });

  test("[27] documents and search results that have text are that text", () => {
    const plain = { type: "document", source: { type: "text", media_type: "text/plain", data: "plain " } };
    const nested = { type: "document", source: { type: "content", content: [text("nested ")] } };
    const found = { type: "search_result", source: "s", title: "t", content: [text("found")] };
    const { conversation, audit } = read({ messages: [user(plain, nested, found)] });
    expect(conversation.messages).toEqual([{ role: "user", text: "plain nested found" }]);
    expect(audit).toEqual([]);
  });

  test("[27] tool references name the tool they brought", () => {
    const reference = { type: "tool_reference", tool_name: "WebFetch" };
    const { conversation, audit } = read({
      messages: [user(text("a")), assistant(use("c1")), user(result("c1", [reference]))],
    });
    expect(conversation.messages[2]!.text).toBe("[tool available: WebFetch]");
    expect(audit).toEqual([{ what: "tool-reference-replaced", field: "messages[2].content[0].content[0]" }]);
  });

  test("[27] unknown blocks are stood in for; in an assistant's message they are left out", () => {
    const { conversation, audit } = read({
      messages: [user({ type: "new_kind" }), assistant({ type: "server_tool_use", id: "s1" }, text("b"))],
    });
    expect(conversation.messages.map((message) => message.text)).toEqual(["[content omitted]", "b"]);
    expect(audit.map((note) => note.what)).toEqual(["block-replaced", "block-dropped"]);
  });

  test("[28] cache marks change nothing, wherever they are", () => {
    const asked = (mark: object) =>
      read({
        system: [{ ...text("s"), ...mark }],
        tools: [{ name: "f", description: "d", input_schema: { type: "object" }, ...mark }],
        messages: [
          user({ ...text("a"), ...mark }),
          assistant({ ...use("c1"), ...mark }),
          user({ ...result("c1", [{ ...text("r"), ...mark }]), ...mark }),
        ],
      });
    const marked = asked({ cache_control: { type: "ephemeral", ttl: "1h" } });
    expect(marked).toEqual(asked({}));
    expect(digestRequest(marked.conversation)).toEqual(digestRequest(asked({}).conversation));
  });

  test("[29] a result is a string, blocks or absent; a failure without a word gets one", () => {
    const { conversation, audit } = read({
      messages: [
        user(text("a")),
        assistant(use("c1"), use("c2"), use("c3"), use("c4")),
        user(
          result("c1", "one"),
          result("c2", [text("t"), text("wo")], { is_error: true }),
          result("c3"),
          result("c4", [], { is_error: true }),
        ),
      ],
    });
    expect(conversation.messages.slice(2)).toEqual([
      { role: "tool", toolCallId: "c1", text: "one" },
      { role: "tool", toolCallId: "c2", text: "two" },
      { role: "tool", toolCallId: "c3", text: "" },
      { role: "tool", toolCallId: "c4", text: "[the tool failed without a message]" },
    ]);
    expect(audit).toEqual([{ what: "failure-worded", field: "messages[2].content[3]" }]);
  });

  test("[29] text beside results keeps its place", () => {
    const messages = messagesOf([
      user(text("a")),
      assistant(use("c1"), use("c2")),
      user(text("before"), result("c1", "r1"), text("be"), text("tween"), result("c2", "r2"), text("after")),
    ]);
    expect(messages.slice(2).map((message) => [message.role, message.text])).toEqual([
      ["user", "before"],
      ["tool", "r1"],
      ["user", "between"],
      ["tool", "r2"],
      ["user", "after"],
    ]);
  });

  test("[30] results come in any order, several in a message, and are put into the order of the calls", () => {
    const asked = (...order: string[]) =>
      messagesOf([
        user(text("a")),
        assistant(use("c1"), use("c2"), use("c3")),
        user(...order.map((id) => result(id, id))),
      ]);
    expect(asked("c1", "c3", "c2")).toEqual(asked("c1", "c2", "c3"));
    expect(asked("c1", "c3", "c2").slice(2)).toHaveLength(3);
  });

  test("[31] input becomes argument text; text that did not parse is recovered, and noted", () => {
    const raw = '{"command": "ls';
    const { conversation, audit } = read({
      messages: [
        user(text("a")),
        assistant(
          use("c1", { b: 1, a: [true, null] }),
          use("c2", { __unparsedToolInput: { raw, len: raw.length } }),
          use("c3", null),
          use("odd:id|/", {}),
        ),
      ],
    });
    expect(conversation.messages[1]).toMatchObject({
      toolCalls: [
        { id: "c1", arguments: '{"b":1,"a":[true,null]}' },
        { id: "c2", arguments: raw },
        { id: "c3", arguments: "{}" },
        { id: "odd:id|/", arguments: "{}" },
      ],
    });
    expect(audit).toEqual([{ what: "arguments-recovered", field: "messages[1].content[1].input" }]);
  });
});

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
    const refusal = refused(fields);
    expect(refusal.field).toBe(field);
    expect(refusal.message).toContain(field);
  });

  test("[57] endless nesting, before it ends the stack", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`) as object;
    const bodies = [
      { messages: [assistant(use("c1", deep))] },
      { messages: [user({ type: "new_kind", deep })] },
      { tools: [{ name: "f", input_schema: deep }] },
    ];
    expect(bodies.map((body) => refused(body).field)).toEqual(["messages", "messages", "tools"]);
    let nested: unknown = "x";
    for (let level = 0; level < 50_000; level++)
      nested = [{ type: "document", source: { type: "content", content: nested } }];
    expect(refused({ messages: [{ role: "user", content: nested }] }).field).toBe("messages");
  });
});
