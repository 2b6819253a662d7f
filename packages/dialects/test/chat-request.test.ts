/** Requests of OpenAI Chat Completions, read into conversations. Numbers are those of the front's checklist. */
import { describe, expect, test } from "vitest";
import { chatDialect, type ModelRequest } from "../src/index.js";
import { refusedField } from "./refused.js";

const user = { role: "user", content: "hi" };
const asked = { role: "user", text: "hi" };
const read = (fields: object): ModelRequest => chatDialect.read({ messages: [user], ...fields });
const messagesOf = (...messages: unknown[]) => read({ messages }).conversation.messages;
const refused = (fields: object) => refusedField(chatDialect, { messages: [user], ...fields });

const call = (id: string, name: string, text: unknown) => ({
  id,
  type: "function",
  function: { name, arguments: text },
});
const calling = (...tool_calls: unknown[]) => ({ role: "assistant", content: null, tool_calls });
const assistant = (fields: object) => ({
  role: "assistant",
  text: "",
  reasoning: "",
  toolCalls: [],
  ...fields,
});

describe("[68] roles", () => {
  test("system and developer are system; user, assistant and tool are themselves", () => {
    const messages = messagesOf(
      { role: "system", content: "a" },
      { role: "developer", content: "b" },
      user,
      { role: "assistant", content: "c" },
      { role: "tool", content: "d", tool_call_id: "x" },
    );
    expect(messages).toEqual([
      { role: "system", text: "a" },
      { role: "system", text: "b" },
      asked,
      assistant({ text: "c" }),
      { role: "tool", text: "d", toolCallId: "x" },
    ]);
  });

  test("a late system message stays where it is", () => {
    expect(messagesOf(user, { role: "developer", content: "b" })[1]).toEqual({ role: "system", text: "b" });
  });

  test.each([
    [{ messages: undefined }, "messages"],
    [{ messages: [] }, "messages"],
    [{ messages: [5] }, "messages[0]"],
    [{ messages: [{ content: "a" }] }, "messages[0].role"],
    [{ messages: [{ role: "robot" }] }, "messages[0].role"],
  ])("what cannot be read is refused by name: %j", (fields, field) => {
    expect(refused(fields)).toBe(field);
  });
});

describe("[69] content", () => {
  const part = (text: string) => ({ type: "text", text });

  test.each([
    ["ab", "ab"],
    ["", ""],
    [null, ""],
    [undefined, ""],
    [[], ""],
    [[part("a"), { ...part("b"), cache_control: { type: "ephemeral" } }], "ab"],
  ])("%j of any role", (content, text) => {
    const messages = messagesOf(
      { role: "user", content },
      { role: "assistant", content, tool_calls: [call("x", "f", "{}")] },
      { role: "tool", content, tool_call_id: "x" },
    );
    expect(messages.map((message) => message.text)).toEqual([text, text, text]);
  });

  test.each([
    ["image_url", "[image omitted]", "image-replaced"],
    ["input_audio", "[audio omitted]", "audio-replaced"],
    ["file", "[file omitted]", "file-replaced"],
    ["something_new", "", "part-dropped"],
  ])("%s is replaced with a note", (type, text, what) => {
    const request = read({ messages: [{ role: "user", content: [part("see "), { type }] }] });
    expect(request.conversation.messages[0]?.text).toBe(`see ${text}`);
    expect(request.audit).toEqual([{ what, field: "messages[0].content[1]" }]);
  });

  test("what is no content is refused by name", () => {
    expect(refused({ messages: [{ role: "user", content: 5 }] })).toBe("messages[0].content");
    expect(refused({ messages: [{ role: "user", content: [{ type: "text" }] }] })).toBe(
      "messages[0].content[0].text",
    );
  });
});

test.each([
  [{}, undefined],
  [{ max_tokens: 5 }, 5],
  [{ max_completion_tokens: 6 }, 6],
  [{ max_tokens: 5, max_completion_tokens: 6 }, 6],
  [{ max_tokens: 5, max_completion_tokens: null }, 5],
])("[70] the output limit of %j is %j", (fields, limit) => {
  expect(read(fields).requested.maxTokens).toBe(limit);
});

test.each([
  [undefined, false],
  [null, false],
  [{}, false],
  [{ include_usage: false }, false],
  [{ include_usage: true }, true],
])("[71] stream_options %j wants usage: %j", (stream_options, wanted) => {
  expect(read({ stream: true, stream_options }).wantsUsage).toBe(wanted);
});

describe("[72] tools", () => {
  const parameters = { type: "object", properties: {} };

  test("functions, strict or not, with or without a schema", () => {
    const tools = [
      { type: "function", function: { name: "f", description: "d", strict: true, parameters } },
      { function: { name: "g" } },
    ];
    expect(read({ tools, parallel_tool_calls: false }).conversation.tools).toEqual([
      { name: "f", description: "d", parameters },
      { name: "g", description: "", parameters: null },
    ]);
  });

  test("a custom tool is a function of one text, and its calls in the history too", () => {
    const custom = { name: "patch", description: "d", format: { type: "text" } };
    const call = { id: "x", type: "custom", custom: { name: "patch", input: "p" } };
    const request = read({ tools: [{ type: "custom", custom }], messages: [user, calling(call)] });
    expect(request.conversation.tools[0]).toMatchObject({
      name: "patch",
      parameters: { required: ["input"] },
    });
    expect(request.toolTargets.get("patch")?.isCustom).toBe(true);
    const toolCalls = [{ id: "x", name: "patch", arguments: '{"input":"p"}' }];
    expect(request.conversation.messages[1]).toEqual(assistant({ toolCalls }));
  });

  test("hosted tools are ignored and listed; none at all is fine", () => {
    expect(read({ tools: [{ type: "web_search_preview" }] })).toMatchObject({
      hostedTools: ["web_search_preview"],
      conversation: { tools: [] },
    });
    for (const tools of [[], null]) expect(read({ tools }).conversation.tools).toEqual([]);
  });

  test.each([
    [undefined, { mode: "auto" }],
    ["auto", { mode: "auto" }],
    ["none", { mode: "none" }],
    ["required", { mode: "required" }],
    [
      { type: "function", function: { name: "f" } },
      { mode: "tool", name: "f" },
    ],
    [
      { type: "custom", custom: { name: "f" } },
      { mode: "tool", name: "f" },
    ],
    [{ type: "allowed_tools", allowed_tools: { mode: "required", tools: [] } }, { mode: "required" }],
  ])("tool_choice %j", (tool_choice, expected) => {
    expect(read({ tool_choice }).toolChoice).toEqual(expected);
  });

  test.each([
    [{ tools: 5 }, "tools"],
    [{ tools: [{ type: "function" }] }, "tools[0].function"],
    [{ tools: [{ type: "function", function: { name: "" } }] }, "tools[0].function.name"],
    [{ tool_choice: "always" }, "tool_choice"],
    [{ tool_choice: { type: "function" } }, "tool_choice.function"],
    [{ tool_choice: { type: "else" } }, "tool_choice.type"],
    [{ functions: [{ name: "f" }] }, "functions"],
  ])("what cannot be read is refused by name: %j", (fields, field) => {
    expect(refused(fields)).toBe(field);
  });
});

describe("[73] arguments of calls in the history", () => {
  test.each(["", '{ "a" : 2.0 }', '{"command": "ls', "[1]", "null"])("%j are kept as they are", (text) => {
    expect(messagesOf(user, calling(call("x", "f", text)))[1]).toEqual(
      assistant({ toolCalls: [{ id: "x", name: "f", arguments: text }] }),
    );
  });

  test("an object is its JSON", () => {
    expect(messagesOf(user, calling(call("x", "f", { a: 1 })))[1]).toMatchObject({
      toolCalls: [{ arguments: '{"a":1}' }],
    });
  });

  test("a call without an id or a name is refused by name", () => {
    const field = "messages[1].tool_calls[0]";
    const one = call("x", "f", "{}");
    expect(refused({ messages: [user, calling({ ...one, id: null })] })).toBe(`${field}.id`);
    expect(refused({ messages: [user, calling({ ...one, function: {} })] })).toBe(`${field}.function.name`);
  });
});

test.each([
  [{ reasoning_content: "why" }, "why"],
  [{ reasoning: "why" }, "why"],
  [{ reasoning_content: "why", reasoning: "why" }, "why"],
  [{ reasoning_content: "", reasoning: "why" }, "why"],
  [{ thinking_blocks: [{ type: "thinking", thinking: "why", signature: "s" }] }, "why"],
  [{ reasoning_content: null, reasoning: { effort: "high" }, thinking_blocks: null }, ""],
])("[74] reasoning of the history: %j", (fields, reasoning) => {
  expect(messagesOf(user, { role: "assistant", content: "a", ...fields })[1]).toEqual(
    assistant({ text: "a", reasoning }),
  );
});

test("[75] a tool message may have a name, and must say which call it answers", () => {
  const answer = { role: "tool", name: "f", content: "ok", tool_call_id: "x" };
  expect(messagesOf(user, answer)[1]).toEqual({ role: "tool", text: "ok", toolCallId: "x" });
  expect(refused({ messages: [user, { ...answer, tool_call_id: undefined }] })).toBe(
    "messages[1].tool_call_id",
  );
});

describe("[76] other fields", () => {
  test("fields that change nothing are ignored", () => {
    const request = read({
      model: "any-alias",
      store: false,
      n: 1,
      user: "u",
      prompt_cache_key: "k",
      metadata: {},
      extra_body: {},
      service_tier: "auto",
      response_format: { type: "text" },
      parallel_tool_calls: true,
      top_logprobs: 5,
    });
    expect(request.model).toBe("any-alias");
    expect({ ...request, model: undefined }).toEqual(read({}));
  });

  test("more than one reply is refused", () => {
    expect(refused({ n: 2 })).toBe("n");
    expect(read({ n: null }).conversation.messages).toEqual([asked]);
  });

  test("an output format that is not text is noted", () => {
    expect(read({ response_format: { type: "json_object" } }).audit).toEqual([
      { what: "text-format-ignored", field: "response_format" },
    ]);
  });

  test.each([
    [{}, undefined],
    [{ reasoning_effort: "medium" }, true],
    [{ reasoning_effort: "none" }, false],
    [{ thinking: { type: "disabled" } }, false],
    [{ thinking: { type: "enabled" } }, true],
    [{ enable_thinking: false }, false],
    [{ chat_template_kwargs: { enable_thinking: true }, reasoning_effort: "none" }, true],
  ])("%j wants reasoning: %j", (fields, wanted) => {
    expect(read(fields).wantsReasoning).toBe(wanted);
  });
});

describe("[77] sampling", () => {
  test("what a record has a field for is recorded, within what it holds", () => {
    const { requested } = read({ temperature: 0.7, top_p: 0.9, top_k: 2e10, max_tokens: 1e12 });
    expect(requested).toEqual({ temperature: 0.7, topP: 0.9, topK: 2 ** 31 - 1, maxTokens: 2 ** 31 - 1 });
    expect(refused({ temperature: "hot" })).toBe("temperature");
  });

  test("the rest is noted", () => {
    const { audit } = read({ min_p: 0.1, seed: 7, logit_bias: null });
    expect(audit).toEqual(["min_p", "seed"].map((field) => ({ what: "sampling-ignored", field })));
  });

  test.each([
    [undefined, []],
    [null, []],
    ["\n\n", ["\n\n"]],
    [
      ["a", "b"],
      ["a", "b"],
    ],
  ])("stop %j", (stop, sequences) => {
    expect(read({ stop }).stopSequences).toEqual(sequences);
  });

  test("a stop sequence that is no text is refused by name", () => {
    expect(refused({ stop: 5 })).toBe("stop");
    expect(refused({ stop: ["a", 5] })).toBe("stop[1]");
  });
});

test.each([
  [{}, []],
  [{ return_token_ids: false, logprobs: null }, []],
  [{ return_token_ids: true }, ["token_ids"]],
  [{ logprobs: true, top_logprobs: 0 }, ["logprobs"]],
  [{ return_token_ids: true, logprobs: true }, ["token_ids", "logprobs"]],
])("[78] token fields asked for by %j", (fields, expected) => {
  expect(read(fields)).toMatchObject({ tokenFields: expected, wantsTokens: expected.length > 0 });
});
