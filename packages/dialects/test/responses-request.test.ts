/** Requests of OpenAI Responses, read into conversations. Numbers are those of the front's checklist. */
import { describe, expect, test } from "vitest";
import { type ModelRequest, responsesDialect } from "../src/index.js";
import { refusedField } from "./refused.js";

const read = (fields: object): ModelRequest => responsesDialect.read({ input: "hi", ...fields });
const messagesOf = (input: unknown, fields: object = {}) => read({ input, ...fields }).conversation.messages;
const refused = (fields: object) => refusedField(responsesDialect, { input: "hi", ...fields });

const user = { role: "user", content: "hi" };
const asked = { role: "user", text: "hi" };
const said = (text: string, fields: object = {}) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [] }],
  ...fields,
});
const call = (id: string, fields: object = {}) => ({
  type: "function_call",
  call_id: id,
  name: "f",
  arguments: "{}",
  ...fields,
});
const result = (id: string, output: unknown = "ok") => ({
  type: "function_call_output",
  call_id: id,
  output,
});
const assistant = (text: string, fields: object = {}) => ({
  role: "assistant",
  text,
  reasoning: "",
  toolCalls: [],
  ...fields,
});
const called = (id: string, fields: object = {}) => ({ id, name: "f", arguments: "{}", ...fields });

describe("[93] input", () => {
  test("is a string or items", () => {
    expect(messagesOf("hi")).toEqual([asked]);
    expect(messagesOf([user])).toEqual([asked]);
  });

  test("messages are typed or of a bare role", () => {
    expect(messagesOf([{ type: "message", ...user }])).toEqual([asked]);
    expect(messagesOf([{ type: null, ...user }])).toEqual([asked]);
    expect(messagesOf([user, said("yes")])).toEqual([asked, assistant("yes")]);
    expect(messagesOf([user, { role: "assistant", content: "yes" }])).toEqual([asked, assistant("yes")]);
  });

  test("results of calls are a string, parts, an object, or nothing", () => {
    const texts = ["ok", [{ type: "input_text", text: "ok" }], { stdout: "x" }, null, undefined].map(
      (output) => messagesOf([user, call("c"), { ...result("c"), output }])[2],
    );
    expect(texts.map((message) => message?.text)).toEqual(["ok", "ok", '{"stdout":"x"}', "", ""]);
    expect(texts[0]).toEqual({ role: "tool", text: "ok", toolCallId: "c" });
  });

  test("calls of custom tools become calls with the argument input", () => {
    const items = [
      user,
      { type: "custom_tool_call", call_id: "c", name: "apply_patch", input: '*** "x"\n' },
      { type: "custom_tool_call_output", call_id: "c", output: [{ type: "input_text", text: "done" }] },
    ];
    expect(messagesOf(items)).toEqual([
      asked,
      assistant("", {
        toolCalls: [{ id: "c", name: "apply_patch", arguments: '{"input":"*** \\"x\\"\\n"}' }],
      }),
      { role: "tool", text: "done", toolCallId: "c" },
    ]);
  });

  test.each([
    [{}, ""],
    [{ id: null, summary: null, content: null, encrypted_content: null }, ""],
    [{ summary: [{ type: "summary_text", text: "a" }] }, "a"],
    [{ summary: [], content: [{ type: "reasoning_text", text: "b" }] }, "b"],
    [
      { summary: [{ type: "summary_text", text: "a" }], content: [{ type: "reasoning_text", text: "b" }] },
      "b",
    ],
    [{ encrypted_content: "opaque", summary: [] }, ""],
  ])("reasoning may have any of its fields: %j", (fields, reasoning) => {
    expect(messagesOf([user, { type: "reasoning", ...fields }, said("yes")])).toEqual([
      asked,
      assistant("yes", { reasoning }),
    ]);
  });

  test("calls that a harness runs under a type of their own are calls", () => {
    const action = { type: "exec", command: ["ls"] };
    const items = [
      user,
      { type: "local_shell_call", call_id: "c", action },
      { type: "local_shell_call_output", call_id: "c", output: "a.txt" },
    ];
    expect(messagesOf(items)).toEqual([
      asked,
      assistant("", { toolCalls: [{ id: "c", name: "local_shell", arguments: JSON.stringify(action) }] }),
      { role: "tool", text: "a.txt", toolCallId: "c" },
    ]);
  });

  test.each(["web_search_call", "compaction", "something_new"])("%s is dropped with a note", (type) => {
    const request = read({ input: [user, { type, id: "x", encrypted_content: "y" }, said("yes")] });
    expect(request.conversation.messages).toEqual([asked, assistant("yes")]);
    expect(request.audit).toEqual([{ what: "item-dropped", field: "input[1]" }]);
  });

  test.each([
    [{ input: undefined }, "input"],
    [{ input: [] }, "input"],
    [{ input: 5 }, "input"],
    [{ input: [5] }, "input[0]"],
    [{ input: [{}] }, "input[0].role"],
    [{ input: [{ role: "robot" }] }, "input[0].role"],
    [{ input: [{ type: 5 }] }, "input[0].type"],
    [{ input: [{ ...user, content: 5 }] }, "input[0].content"],
    [{ input: [{ ...user, content: [{ type: "input_text" }] }] }, "input[0].content[0].text"],
    [{ input: [user, call("c", { call_id: undefined })] }, "input[1].call_id"],
    [{ input: [user, call("c", { name: 5 })] }, "input[1].name"],
    [{ input: [user, { type: "item_reference", id: "x" }] }, "input[1]"],
  ])("what cannot be read is refused by name: %j", (fields, field) => {
    expect(refused(fields)).toBe(field);
  });
});

describe("[94] instructions and developer items", () => {
  const developer = (text: string) => ({ role: "developer", content: [{ type: "input_text", text }] });

  test("what the request opens with is one system message, in order", () => {
    const items = [developer("two"), { role: "system", content: "three" }, user];
    expect(messagesOf(items, { instructions: "one" })).toEqual([
      { role: "system", text: "one\n\ntwo\n\nthree" },
      asked,
    ]);
  });

  test("later ones stay where they are", () => {
    expect(messagesOf([developer("one"), user, said("yes"), developer("two"), user])).toEqual([
      { role: "system", text: "one" },
      asked,
      assistant("yes"),
      { role: "system", text: "two" },
      asked,
    ]);
  });

  test.each([null, undefined, "", []])("no instructions are no message: %j", (instructions) => {
    expect(messagesOf([user], { instructions })).toEqual([asked]);
  });
});

describe("[95] content", () => {
  test("input_text, output_text and refusals are text", () => {
    const content = [
      { type: "input_text", text: "a" },
      { type: "text", text: "b" },
    ];
    expect(messagesOf([{ role: "user", content }])).toEqual([{ role: "user", text: "ab" }]);
    const reply = { role: "assistant", content: [{ type: "refusal", refusal: "no" }] };
    expect(messagesOf([user, reply])).toEqual([asked, assistant("no")]);
  });

  test.each([
    ["input_image", "[image omitted]", "image-replaced"],
    ["input_file", "[file omitted]", "file-replaced"],
    ["input_audio", "[audio omitted]", "audio-replaced"],
    ["something_new", "", "part-dropped"],
  ])("%s is replaced with a note", (type, text, what) => {
    const content = [
      { type: "input_text", text: "see " },
      { type, image_url: "data:" },
    ];
    const request = read({ input: [{ role: "user", content }] });
    expect(request.conversation.messages).toEqual([{ role: "user", text: `see ${text}` }]);
    expect(request.audit).toEqual([{ what, field: "input[0].content[1]" }]);
  });

  test("an image in the result of a call is replaced too", () => {
    const output = [{ type: "input_image", image_url: "data:" }];
    expect(messagesOf([user, call("c"), result("c", output)])[2]?.text).toBe("[image omitted]");
  });
});

describe("[96] tools", () => {
  const parameters = { type: "object", properties: { a: {} } };

  test("functions are offered as they are; strict is ignored", () => {
    const { conversation } = read({
      tools: [{ type: "function", name: "f", description: "d", strict: true, parameters }],
    });
    expect(conversation.tools).toEqual([{ name: "f", description: "d", parameters }]);
  });

  test("a custom tool is a function of one text, with its grammar in the description", () => {
    const format = { type: "grammar", syntax: "lark", definition: "start: x" };
    const request = read({ tools: [{ type: "custom", name: "patch", description: "d", format }] });
    expect(request.conversation.tools).toEqual([
      {
        name: "patch",
        description: "d\n\nGrammar of `input`:\nstart: x",
        parameters: {
          type: "object",
          properties: { input: { type: "string" } },
          required: ["input"],
          additionalProperties: false,
        },
      },
    ]);
    expect(request.toolTargets.get("patch")).toEqual({ name: "patch", namespace: undefined, isCustom: true });
  });

  test("a namespace is flattened into names that are unique and remembered", () => {
    const member = { type: "function", name: "spawn" };
    const request = read({
      tools: [
        { type: "function", name: "agents__spawn" },
        {
          type: "namespace",
          name: "agents",
          description: "about",
          tools: [member, { ...member, name: "wait" }],
        },
      ],
    });
    expect(request.conversation.tools.map(({ name, description }) => [name, description])).toEqual([
      ["agents__spawn", ""],
      ["agents__spawn_2", "about"],
      ["agents__wait", ""],
    ]);
    expect([...request.toolTargets]).toEqual([
      ["agents__spawn_2", { name: "spawn", namespace: "agents", isCustom: false }],
      ["agents__wait", { name: "wait", namespace: "agents", isCustom: false }],
    ]);
  });

  test("calls of the history have the names the policy sees, also when no tools are offered", () => {
    const items = [user, call("c", { name: "spawn", namespace: "agents" })];
    const tools = [{ type: "namespace", name: "agents", tools: [{ type: "function", name: "spawn" }] }];
    for (const offered of [tools, []])
      expect(messagesOf(items, { tools: offered })[1]).toEqual(
        assistant("", { toolCalls: [called("c", { name: "agents__spawn" })] }),
      );
  });

  test("two tools of one name leave the calls of the first their name", () => {
    const tools = [
      { type: "function", name: "f" },
      { type: "function", name: "f" },
    ];
    expect(messagesOf([user, call("c")], { tools })[1]).toEqual(assistant("", { toolCalls: [called("c")] }));
  });

  test("hosted tools are ignored and listed", () => {
    const request = read({
      tools: [{ type: "web_search", external_web_access: true }, { type: "local_shell" }],
    });
    expect(request.conversation.tools).toEqual([]);
    expect(request.hostedTools).toEqual(["web_search", "local_shell"]);
  });

  test.each([
    ["auto", { mode: "auto" }],
    [null, { mode: "auto" }],
    ["none", { mode: "none" }],
    ["required", { mode: "required" }],
    [
      { type: "function", name: "f" },
      { mode: "tool", name: "f" },
    ],
    [
      { type: "custom", name: "f" },
      { mode: "tool", name: "f" },
    ],
    [{ type: "allowed_tools", mode: "required", tools: [] }, { mode: "required" }],
    [{ type: "web_search" }, { mode: "auto" }],
  ])("tool_choice %j", (tool_choice, expected) => {
    expect(read({ tool_choice }).toolChoice).toEqual(expected);
  });

  test.each([
    [{ tools: 5 }, "tools"],
    [{ tools: [{}] }, "tools[0].type"],
    [{ tools: [{ type: "function" }] }, "tools[0].name"],
    [{ tools: [{ type: "namespace", name: "n", tools: [{ type: "function" }] }] }, "tools[0].tools[0].name"],
    [{ tool_choice: "always" }, "tool_choice"],
    [{ tool_choice: { type: "function" } }, "tool_choice.name"],
  ])("what cannot be read is refused by name: %j", (fields, field) => {
    expect(refused(fields)).toBe(field);
  });
});

describe("[97] other fields", () => {
  test("fields that change nothing are accepted", () => {
    const { audit, conversation } = read({
      store: true,
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: "k",
      client_metadata: { a: "b" },
      reasoning: { summary: "auto" },
      text: { format: { type: "text" }, verbosity: "low" },
      truncation: "auto",
      parallel_tool_calls: true,
      service_tier: "auto",
      safety_identifier: "x",
      previous_response_id: null,
    });
    expect(audit).toEqual([]);
    expect(conversation).toEqual(read({}).conversation);
  });

  test("an output format that is not text is noted", () => {
    const { audit } = read({ text: { format: { type: "json_schema", schema: {} } } });
    expect(audit).toEqual([{ what: "text-format-ignored", field: "text.format" }]);
  });

  test("sampling values are recorded, limits within what a record holds", () => {
    const fields = { max_output_tokens: 1e12, temperature: 0.5, top_p: 0.9 };
    expect(read(fields).requested).toEqual({ maxTokens: 2 ** 31 - 1, temperature: 0.5, topP: 0.9 });
    expect(refused({ max_output_tokens: "many" })).toBe("max_output_tokens");
  });

  test.each([
    [undefined, undefined],
    [{ summary: "auto" }, undefined],
    [{ effort: null }, undefined],
    [{ effort: "none" }, false],
    [{ effort: "low" }, true],
  ])("reasoning %j wants reasoning: %j", (reasoning, wanted) => {
    expect(read({ reasoning }).wantsReasoning).toBe(wanted);
  });

  test.each(["previous_response_id", "conversation", "prompt"])(
    "%s refers to what is not stored",
    (field) => {
      expect(refused({ [field]: "id" })).toBe(field);
    },
  );

  test("a reply in the background is refused", () => {
    expect(refused({ background: true })).toBe("background");
  });
});

describe("[98] items of one assistant turn", () => {
  test("are one message, the calls in order", () => {
    const items = [user, { type: "reasoning", summary: [{ type: "summary_text", text: "why" }] }];
    items.push(said("first ") as never, call("a") as never, call("b") as never, said("then") as never);
    expect(messagesOf([...items, result("b"), result("a")])).toEqual([
      asked,
      assistant("first then", { reasoning: "why", toolCalls: [called("a"), called("b")] }),
      { role: "tool", text: "ok", toolCallId: "a" },
      { role: "tool", text: "ok", toolCallId: "b" },
    ]);
  });

  test("end where our own ids name another turn", () => {
    const items = [
      user,
      said("cut", { id: "msg_trial-t1_0" }),
      { type: "reasoning", id: "rs_trial-t2_0", summary: [] },
      call("a", { id: "fc_trial-t2_1" }),
    ];
    expect(messagesOf(items)).toEqual([asked, assistant("cut"), assistant("", { toolCalls: [called("a")] })]);
    const locators = [
      { type: "reasoning", encrypted_content: "mortise:t1:0", summary: [] },
      { type: "reasoning", encrypted_content: "mortise:t2:0", summary: [] },
    ];
    expect(messagesOf([user, ...locators])).toEqual([asked, assistant(""), assistant("")]);
  });

  test("stay together under the ids of one turn, whatever their order", () => {
    const items = [
      said("a", { id: "msg_t1_0" }),
      { type: "reasoning", id: "rs_t1_1", summary: [] },
      said("b", { id: "msg_t1_2" }),
    ];
    expect(messagesOf([user, ...items])).toEqual([asked, assistant("ab")]);
  });

  test("without such ids: behind text, only calls belong to its turn", () => {
    const thought = { type: "reasoning", summary: [{ type: "summary_text", text: "why" }] };
    expect(messagesOf([user, said("cut"), said("again"), call("a")])).toEqual([
      asked,
      assistant("cut"),
      assistant("again", { toolCalls: [called("a")] }),
    ]);
    expect(messagesOf([user, said("cut"), thought, said("again")])).toEqual([
      asked,
      assistant("cut"),
      assistant("again", { reasoning: "why" }),
    ]);
  });
});

describe("[99] tools that are not there", () => {
  test.each([[[]], [null], [undefined]])("%j", (tools) => {
    expect(read({ tools }).conversation.tools).toEqual([]);
  });
});

describe("[113] arguments of calls", () => {
  test.each(["", '{"a": "\\u00e9" , }', '{"cmd": "ls', "{ }", "[1]"])("%j are kept as they are", (text) => {
    const [, message] = messagesOf([user, call("functions.x:0|y/z", { arguments: text })]);
    const toolCalls = [called("functions.x:0|y/z", { arguments: text })];
    expect(message).toEqual(assistant("", { toolCalls }));
  });
});
