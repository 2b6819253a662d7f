/** Replies as a client of OpenAI Chat Completions sees them. Numbers are those of the front's checklist. */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, MortiseError } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { chatDialect, type ReplyTokens } from "../src/index.js";
import { addUp } from "./chat-client.js";
import { CUT, call, cutCall, END, HEAD, reasoning, text } from "./reply-kit.js";

const writer = (fields: object = {}) =>
  chatDialect.writer(HEAD, chatDialect.read({ messages: [{ role: "user", content: "hi" }], ...fields }));

interface Asked {
  readonly fields?: object;
  readonly end?: ReplyEnd;
  readonly tokens?: ReplyTokens;
}

function streamed(parts: readonly ReplyPart[], { fields = {}, end = END, tokens }: Asked = {}) {
  const reply = writer(fields);
  const before = reply.opening(0) + parts.map((part) => reply.parts([part])).join("");
  return addUp(before + reply.ending(end, tokens));
}

const deltas = (parts: readonly ReplyPart[]) =>
  streamed(parts)
    .chunks.slice(1, -1)
    .map(({ choices }) => choices[0].delta);

const TOKENS: ReplyTokens = {
  promptIds: Int32Array.of(1, 2),
  ids: Int32Array.of(3, 4),
  logProbabilities: Float32Array.of(-0.5, Number.NaN),
};

describe("[78] token fields", () => {
  const both = { return_token_ids: true, logprobs: true };
  const content = [
    { token: "token_id:3", logprob: -0.5, bytes: null, top_logprobs: [] },
    { token: "token_id:4", logprob: null, bytes: null, top_logprobs: [] },
  ];

  test("are in no reply that did not ask", () => {
    const whole = writer().whole([text("a")], END, TOKENS);
    const { chunks } = streamed([text("a")], { tokens: TOKENS });
    for (const reply of [whole, JSON.stringify(chunks)]) expect(reply).not.toMatch(/token_ids|token_id:/);
    expect(JSON.parse(whole).choices[0].logprobs).toBeNull();
  });

  test("are in the whole reply that asked", () => {
    const reply = JSON.parse(writer(both).whole([text("a")], END, TOKENS));
    expect(reply.prompt_token_ids).toEqual([1, 2]);
    expect(reply.choices[0]).toMatchObject({ token_ids: [3, 4], logprobs: { content } });
  });

  test("are in the finish chunk of the stream that asked", () => {
    const { chunks } = streamed([text("a")], { fields: both, tokens: TOKENS });
    expect(chunks.at(-1)).toMatchObject({
      prompt_token_ids: [1, 2],
      choices: [{ finish_reason: "stop", token_ids: [3, 4], logprobs: { content } }],
    });
  });

  test("each only where it was asked for; log-probabilities that are missing are null", () => {
    const ids = JSON.parse(writer({ return_token_ids: true }).whole([text("a")], END, TOKENS));
    expect(ids.choices[0]).toMatchObject({ token_ids: [3, 4], logprobs: null });
    const none = { ...TOKENS, logProbabilities: undefined };
    const reply = JSON.parse(writer({ logprobs: true }).whole([text("a")], END, none));
    expect(reply.choices[0].logprobs).toBeNull();
    expect(reply.choices[0]).not.toHaveProperty("token_ids");
    expect(reply).not.toHaveProperty("prompt_token_ids");
  });
});

test("[79] the first chunk, before anything is sampled, is the role", () => {
  const { chunks } = addUp(writer().opening(0));
  expect(chunks).toEqual([
    {
      id: "chatcmpl-trial-t3",
      created: 1_700_000_000,
      model: "any-alias",
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: { role: "assistant" }, finish_reason: null }],
    },
  ]);
});

test("[80] reasoning comes as reasoning_content, before the content", () => {
  expect(deltas([reasoning("wh"), reasoning("y"), text("a")])).toEqual([
    { reasoning_content: "wh" },
    { reasoning_content: "y" },
    { content: "a" },
  ]);
});

describe("[81] a call", () => {
  test("starts with index, id, type, name and no arguments; then arguments alone", () => {
    expect(deltas(call(0, "bash", '{"a"', ":1}"))).toEqual([
      {
        tool_calls: [{ index: 0, id: "call_0", type: "function", function: { name: "bash", arguments: "" } }],
      },
      { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ":1}" } }] },
    ]);
  });

  test("without arguments starts all the same", () => {
    expect(streamed(call(0, "bash")).calls).toMatchObject([{ function: { name: "bash", arguments: "" } }]);
  });

  test("that is cut behind its name is not shown: no text would be run as no arguments", () => {
    expect(streamed(cutCall(0, "bash"), { end: CUT })).toMatchObject({ calls: [], finishes: ["length"] });
  });

  test("of a custom tool has its raw text", () => {
    const fields = { tools: [{ type: "custom", custom: { name: "patch" } }] };
    const parts = call(0, "patch", '{"input":', '"*** \\n', 'x"}');
    const expected = [{ id: "call_0", type: "custom", custom: { name: "patch", input: "*** \nx" } }];
    expect(streamed(parts, { fields }).calls).toEqual(expected);
    expect(JSON.parse(writer(fields).whole(parts, END)).choices[0].message.tool_calls).toEqual(expected);
  });
});

test("[82] every call has its own index", () => {
  const { calls } = streamed([...call(0, "a", "{}"), ...call(1, "b", "{}"), ...call(2, "c", "{}")]);
  expect(calls.map((one) => [one.id, one.function.name])).toEqual([
    ["call_0", "a"],
    ["call_1", "b"],
    ["call_2", "c"],
  ]);
});

describe("[83] one finish chunk", () => {
  const complete = call(0, "bash", "{}");
  const cut = cutCall(0, "bash", '{"a');
  test.each([
    ["stop", [text("a")], FinishReason.STOP],
    ["tool_calls", complete, FinishReason.STOP],
    ["stop", cut, FinishReason.STOP],
    ["length", [text("a")], FinishReason.LENGTH],
    ["length", complete, FinishReason.LENGTH],
    ["length", cut, FinishReason.LENGTH],
  ] as const)("%s", (expected, parts, finish) => {
    const end = { ...END, finish };
    expect(streamed(parts, { end }).finishes).toEqual([expected]);
    expect(JSON.parse(writer().whole(parts, end)).choices[0].finish_reason).toBe(expected);
  });
});

test("[84] usage comes in a chunk without choices, when asked, exact", () => {
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 20,
    total_tokens: 120,
    prompt_tokens_details: { cached_tokens: 60 },
    completion_tokens_details: { reasoning_tokens: 7 },
  };
  const { chunks } = streamed([text("a")], { fields: { stream_options: { include_usage: true } } });
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
  expect(streamed([text("a")]).usage).toBeUndefined();
  expect(JSON.parse(writer().whole([text("a")], END)).usage).toEqual(usage);
});

test("[85] a stream ends with [DONE]", () => {
  expect(streamed([text("a")]).isDone).toBe(true);
});

test("[86] nothing is sent for parts without text", () => {
  expect(deltas([text(""), reasoning(""), text("a")])).toEqual([{ content: "a" }]);
});

describe("[87] the reply that is not streamed", () => {
  const messageOf = (parts: readonly ReplyPart[], end = END) =>
    JSON.parse(writer().whole(parts, end)).choices[0].message;

  test("is what the stream adds up to", () => {
    const parts = [reasoning("why"), text("a"), text("b"), ...call(0, "bash", '{"a"', ":1}")];
    const { content, reasoning: thought, calls } = streamed(parts);
    expect(messageOf(parts)).toEqual({
      role: "assistant",
      content,
      reasoning_content: thought,
      tool_calls: calls,
    });
  });

  test("has null content beside calls, and text otherwise", () => {
    expect(messageOf(call(0, "bash", "{}")).content).toBeNull();
    expect(messageOf([])).toEqual({ role: "assistant", content: "" });
  });

  test("has a cut call only when no harness can run it", () => {
    const shown = (...pieces: string[]) => messageOf(cutCall(0, "bash", ...pieces), CUT).tool_calls;
    expect(shown('{"cmd": "ls')).toMatchObject([{ function: { arguments: '{"cmd": "ls' } }]);
    expect(shown('{"cmd": "ls"}')).toBeUndefined();
    expect(shown()).toBeUndefined();
  });
});

test("[90] a failure within the stream is an error object, and the end", () => {
  const error = new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "engine at 10.0.0.7 died." });
  const stream = writer().failing(error);
  expect(addUp(stream)).toMatchObject({ isDone: false, finishes: [] });
  expect(JSON.parse(stream.slice("data: ".length)).error).toMatchObject({ type: "server_error" });
  expect(stream).not.toContain("10.0.0.7");
});

test("[92] a keep-alive is a chunk that adds nothing", () => {
  const reply = writer();
  const stream = reply.opening(0) + reply.keepAlive() + reply.parts([text("a")]) + reply.keepAlive();
  expect(addUp(stream)).toMatchObject({ content: "a", finishes: [] });
  expect(addUp(reply.keepAlive()).chunks[0].choices).toEqual([{ index: 0, delta: {}, finish_reason: null }]);
});
