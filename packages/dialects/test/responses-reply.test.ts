/** Replies as a client of OpenAI Responses sees them. Numbers are those of the front's checklist. */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { responsesDialect } from "../src/index.js";
import { CUT, call, cutCall, END, HEAD, reasoning, text } from "./reply-kit.js";
import { eventsOf, responseOf } from "./responses-client.js";

const TOOLS = [
  { type: "function", name: "bash" },
  { type: "custom", name: "patch" },
  {
    type: "namespace",
    name: "agents",
    tools: [
      { type: "function", name: "spawn" },
      { type: "custom", name: "tell" },
    ],
  },
];

const writer = (fields: object = {}) =>
  responsesDialect.writer(HEAD, responsesDialect.read({ input: "hi", tools: TOOLS, ...fields }));

function streamed(parts: readonly ReplyPart[], end: ReplyEnd = END): string {
  const reply = writer();
  return reply.opening(0) + parts.map((part) => reply.parts([part])).join("") + reply.ending(end);
}

const typesOf = (parts: readonly ReplyPart[]) => eventsOf(streamed(parts)).map(({ type }) => type);
const outputOf = (parts: readonly ReplyPart[], end?: ReplyEnd) =>
  responseOf(streamed(parts, end)).response.output;
const itemTypes = (parts: readonly ReplyPart[]) => outputOf(parts).map((item: { type: string }) => item.type);

test("[100] a stream opens with response.created and response.in_progress, before anything is sampled", () => {
  const events = eventsOf(writer().opening(0));
  expect(events.map(({ type }) => type)).toEqual(["response.created", "response.in_progress"]);
  expect(events[0]?.response).toMatchObject({
    id: "resp_trial-t3",
    object: "response",
    status: "in_progress",
    model: "any-alias",
    created_at: 1_700_000_000,
    output: [],
    usage: null,
  });
});

test("[101] every item is added and done, one open at a time, with an id of its own", () => {
  const parts = [
    reasoning("why"),
    text("a"),
    text("b"),
    ...call(0, "bash", "{}"),
    text("c"),
    ...call(1, "bash", "{}"),
  ];
  const { response, opened } = responseOf(streamed(parts));
  expect(response.output.map((item: { type: string }) => item.type)).toEqual([
    "reasoning",
    "message",
    "function_call",
    "message",
    "function_call",
  ]);
  expect(new Set(opened.map(({ id }) => id)).size).toBe(5);
  expect(opened.slice(1).every(({ status }) => status === "in_progress")).toBe(true);
});

test("[101] parts without text open nothing", () => {
  expect(outputOf([reasoning(""), text("")])).toEqual([]);
});

test("[102] text: its part, deltas, and both closed", () => {
  expect(typesOf([text("a"), text("b")]).slice(2)).toEqual([
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  expect(outputOf([text("a"), text("b")])).toEqual([
    {
      id: "msg_trial-t3_0",
      type: "message",
      status: "completed",
      role: "assistant",
      content: [{ type: "output_text", text: "ab", annotations: [], logprobs: [] }],
    },
  ]);
});

describe("[103] calls", () => {
  test("of functions: deltas of the arguments as they come", () => {
    expect(typesOf(call(0, "bash", '{"a"', ":1}")).slice(2, -1)).toEqual([
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
    ]);
    expect(outputOf(call(0, "bash", '{"a"', ":1}"))).toEqual([
      {
        id: "fc_trial-t3_0",
        type: "function_call",
        status: "completed",
        call_id: "call_0",
        name: "bash",
        arguments: '{"a":1}',
      },
    ]);
  });

  test("of custom tools: the raw text, as far as it is certain", () => {
    const parts = call(0, "patch", '{"inp', 'ut": "*** \\', 'n\\"x', '"}');
    expect(typesOf(parts).slice(2, -1)).toEqual([
      "response.output_item.added",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.delta",
      "response.custom_tool_call_input.done",
      "response.output_item.done",
    ]);
    expect(outputOf(parts)).toEqual([
      {
        id: "ctc_trial-t3_0",
        type: "custom_tool_call",
        status: "completed",
        call_id: "call_0",
        name: "patch",
        input: '*** \n"x',
      },
    ]);
  });

  test("of unknown tools are calls of functions, for the harness to answer", () => {
    expect(outputOf(call(0, "nothing", "{}"))[0]).toMatchObject({ type: "function_call", name: "nothing" });
  });

  test("without arguments have empty ones", () => {
    expect(outputOf(call(0, "bash"))[0]).toMatchObject({ arguments: "", status: "completed" });
  });
});

test("[104] reasoning is a summary, with a locator that says its turn", () => {
  const stream = streamed([reasoning("wh"), reasoning("y"), text("a")]);
  expect(
    eventsOf(stream)
      .map(({ type }) => type)
      .slice(2, 8),
  ).toEqual([
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
  ]);
  expect(responseOf(stream).response.output[0]).toEqual({
    id: "rs_trial-t3_0",
    type: "reasoning",
    summary: [{ type: "summary_text", text: "why" }],
    encrypted_content: "mortise:trial-t3:0",
  });
});

test("[105] numbers rise from 0 without gaps, keep-alives and failures included", () => {
  const reply = writer();
  const stream = reply.opening(0) + reply.keepAlive() + reply.parts([text("a")]) + reply.keepAlive();
  // The client throws on a gap.
  expect(eventsOf(stream + reply.failing(engineFailure())).length).toBe(9);
});

test("[106] response.completed has the output and the usage", () => {
  const { response } = responseOf(streamed([text("a")]));
  expect(response).toMatchObject({ status: "completed", error: null, incomplete_details: null });
  expect(response.output).toHaveLength(1);
  expect(response.usage).toEqual({
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 60 },
    output_tokens: 20,
    output_tokens_details: { reasoning_tokens: 7 },
    total_tokens: 120,
  });
});

describe("[107] a reply cut by a limit", () => {
  test.each([FinishReason.LENGTH, FinishReason.ABORT])(
    "ends with response.completed and says incomplete: %s",
    (finish) => {
      const { response } = responseOf(streamed([text("a")], { ...END, finish }));
      expect(response).toMatchObject({
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      });
      expect(response.output[0].status).toBe("incomplete");
    },
  );

  test("keeps the calls that were complete", () => {
    const { calls } = responseOf(streamed([...call(0, "bash", "{}"), text("a")], CUT));
    expect(calls).toMatchObject([{ status: "completed", arguments: "{}" }]);
  });

  test("closes a cut call only when no harness can run it", () => {
    const { calls } = responseOf(streamed(cutCall(0, "bash", '{"cmd": "ls'), CUT));
    expect(calls).toMatchObject([{ status: "incomplete", arguments: '{"cmd": "ls' }]);
  });

  test.each([
    ["whose text is whole", cutCall(0, "bash", '{"cmd": "ls"}')],
    ["whose text is empty", cutCall(0, "bash", " ")],
    ["of a custom tool", cutCall(0, "patch", '{"input": "*** Begin')],
  ])("leaves a call open %s", (_what, parts) => {
    const { calls, opened, response } = responseOf(streamed(parts, CUT));
    expect(calls).toEqual([]);
    expect(opened).toHaveLength(1);
    expect(response.output).toEqual([]);
  });

  test("shows nothing of a call that was cut behind its name", () => {
    expect(responseOf(streamed(cutCall(0, "bash"), CUT)).opened).toEqual([]);
  });
});

describe("[108] a failure within the stream", () => {
  test.each([
    ["MORTISE_PROVIDER_ENGINE", "server_error"],
    ["MORTISE_PROVIDER_CONTEXT_LENGTH", "context_length_exceeded"],
    ["MORTISE_PROVIDER_BUDGET", "insufficient_quota"],
    ["MORTISE_PROVIDER_BAD_REQUEST", "invalid_prompt"],
  ] as const)("%s is %s", (code, expected) => {
    const reply = writer();
    const stream = reply.opening(0) + reply.failing(new MortiseError({ code, message: "x." }));
    const [error, failed] = eventsOf(stream).slice(-2);
    expect(error).toMatchObject({ type: "error", code: expected, error: { code: expected } });
    expect(failed?.type).toBe("response.failed");
    expect(failed?.response).toMatchObject({ status: "failed", error: { code: expected } });
  });

  test("says nothing of the inside", () => {
    const stream = writer().failing(engineFailure());
    expect(stream).not.toContain("10.0.0.7");
  });
});

test("[110] a keep-alive is a data event that changes nothing", () => {
  const reply = writer();
  const stream = `${reply.opening(0)}${reply.keepAlive()}${reply.parts([text("a")])}${reply.keepAlive()}`;
  expect(responseOf(stream + reply.ending(END)).response.output).toEqual(outputOf([text("a")]));
  expect(stream.match(/^data: /gm)).toHaveLength(7);
});

test("[112] a call of a tool in a namespace has both names again", () => {
  expect(outputOf(call(0, "agents__spawn", "{}"))[0]).toMatchObject({
    type: "function_call",
    name: "spawn",
    namespace: "agents",
  });
  expect(outputOf(call(0, "agents__tell", '{"input":"x"}'))[0]).toMatchObject({
    type: "custom_tool_call",
    name: "tell",
    namespace: "agents",
    input: "x",
  });
  expect(outputOf(call(0, "bash", "{}"))[0]).not.toHaveProperty("namespace");
});

test("[113] arguments are the text as it was sampled", () => {
  const sampled = '{ "cmd" : "h\\u00e9 \\/" , "n":2.0 }';
  expect(outputOf(call(0, "bash", ...sampled))[0].arguments).toBe(sampled);
});

test("the reply that is not streamed is the response of the stream", () => {
  const parts = [reasoning("why"), text("a"), ...call(0, "bash", "{}"), ...cutCall(1, "bash", '{"a')];
  for (const end of [END, CUT]) {
    const whole = JSON.parse(writer().whole(parts, end));
    expect(whole).toEqual(responseOf(streamed(parts, end)).response);
  }
});

test("what a harness sends back of a reply is one message, in the conversation of the next request", () => {
  const parts = [
    reasoning("why"),
    text("a"),
    ...call(0, "agents__spawn", '{"x": 1}'),
    ...call(1, "patch", '{"input":"p"}'),
  ];
  const results = [0, 1].map((at) => ({ type: "function_call_output", call_id: `call_${at}`, output: "ok" }));
  const input = [{ role: "user", content: "hi" }, ...outputOf(parts), ...results];
  expect(responsesDialect.read({ input, tools: TOOLS }).conversation.messages[1]).toEqual({
    role: "assistant",
    text: "a",
    reasoning: "why",
    toolCalls: [
      { id: "call_0", name: "agents__spawn", arguments: '{"x": 1}' },
      { id: "call_1", name: "patch", arguments: '{"input":"p"}' },
    ],
  });
  expect(itemTypes(parts)).toEqual(["reasoning", "message", "function_call", "custom_tool_call"]);
});

test("the tool choice is echoed as it was asked for", () => {
  const opened = (tool_choice: unknown) =>
    eventsOf(writer({ tool_choice }).opening(0))[0]?.response.tool_choice;
  expect(opened("required")).toBe("required");
  expect(opened({ type: "function", name: "bash" })).toEqual({ type: "function", name: "bash" });
  expect(opened({ type: "custom", name: "patch" })).toEqual({ type: "custom", name: "patch" });
});

function engineFailure(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "engine at 10.0.0.7 died." });
}
