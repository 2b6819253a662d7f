/** Replies of Anthropic Messages, as a strict client reads them. Numbers are those of the front's checklist. */
import type { ReplyEnd, ReplyPart } from "@mortise/capture";
import { FinishReason, MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { echoedText, messagesDialect } from "../src/index.js";
import { eventsOf, messageOf } from "./messages-client.js";

const request = messagesDialect.read({ messages: [{ role: "user", content: "hi" }], stream: true });
const head = { turn: "trial-t3", model: "any-alias", createdMs: 1_700_000_000_000 };
const writerOf = () => messagesDialect.writer(head, request);

const end = (fields: Partial<ReplyEnd> = {}): ReplyEnd => ({
  finish: FinishReason.STOP,
  promptTokens: 1000,
  cachedTokens: 900,
  completionTokens: 42,
  reasoningTokens: 0,
  ...fields,
});
const reasoning = (text: string): ReplyPart => ({ kind: "reasoning", text });
const text = (value: string): ReplyPart => ({ kind: "text", text: value });
const call = (at: number, ...pieces: string[]): ReplyPart[] => [
  { kind: "call-start", call: at, id: `call_${at}`, name: `tool${at}` },
  ...pieces.map((piece): ReplyPart => ({ kind: "call-arguments", call: at, text: piece })),
  { kind: "call-end", call: at, tokenEnd: 9 },
];
const cutCall = (at: number, ...pieces: string[]) => call(at, ...pieces).slice(0, -1);

/** The stream of a reply whose parts come one by one. */
function stream(parts: readonly ReplyPart[], ending = end()): string {
  const writer = writerOf();
  const said = parts.map((part) => writer.parts([part])).join("");
  return writer.opening(1000) + said + writer.ending(ending);
}

const whole = (parts: readonly ReplyPart[], ending = end()) =>
  JSON.parse(writerOf().whole(parts, ending)) as Record<string, unknown>;
const stopReason = (parts: readonly ReplyPart[], ending?: ReplyEnd) =>
  messageOf(stream(parts, ending)).stop_reason;

describe("a stream", () => {
  test("[41] message_start comes once, with no content and the usage known by then", () => {
    const events = eventsOf(stream([text("a"), ...call(0, "{}")]));
    expect(events.filter((event) => event.type === "message_start")).toHaveLength(1);
    expect(events[0]).toEqual({
      type: "message_start",
      message: {
        id: "msg_trial-t3",
        type: "message",
        role: "assistant",
        model: "any-alias",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 1000,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
          output_tokens: 0,
        },
      },
    });
  });

  test("[42] a ping follows it, and keeps a silent stream alive", () => {
    const writer = writerOf();
    expect(eventsOf(writer.opening(1)).map((event) => event.type)).toEqual(["message_start", "ping"]);
    expect(writer.keepAlive()).toBe('event: ping\ndata: {"type":"ping"}\n\n');
    const interrupted = writer.parts([text("a")]) + writer.keepAlive() + writer.parts([text("b")]);
    const message = messageOf(writer.opening(1) + interrupted + writer.ending(end()));
    expect(message.content).toEqual([{ type: "text", text: "ab" }]);
  });

  test("[43] blocks have the indexes 0 to n and are open one at a time", () => {
    const events = eventsOf(
      stream([reasoning("r"), text("a"), ...call(0, "{}"), ...call(1, "{}"), text("b")]),
    );
    const starts = events.filter((event) => event.type === "content_block_start");
    expect(starts.map((event) => [event.index, event.content_block.type])).toEqual([
      [0, "thinking"],
      [1, "text"],
      [2, "tool_use"],
      [3, "tool_use"],
      [4, "text"],
    ]);
  });

  test("[44] thinking comes in its own block before text, and is signed when it ends", () => {
    const events = eventsOf(stream([reasoning("so "), reasoning("then"), text("a")]));
    const first = events.filter((event) => event.index === 0);
    expect(first).toEqual([
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "thinking", thinking: "", signature: "" },
      },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "so " } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "then" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "trial-t3-0" } },
      { type: "content_block_stop", index: 0 },
    ]);
    expect(events.findIndex((event) => event.index === 1)).toBeGreaterThan(events.indexOf(first.at(-1)!));
  });

  test("[45] text goes out as it comes, to the letter", () => {
    const pieces = ["  two", " words\n", "\n", "é \ud83d\ude00 ", "\u2028end  \n"];
    const events = eventsOf(stream(pieces.map(text)));
    const deltas = events.filter((event) => event.type === "content_block_delta");
    expect(deltas.map((event) => event.delta)).toEqual(
      pieces.map((piece) => ({ type: "text_delta", text: piece })),
    );
  });

  test("[46] a call begins with an empty input, and its arguments follow in the pieces they come in", () => {
    const pieces = ['{ "a"', " : 2.0,", '"b":"\\u00e9"}'];
    const events = eventsOf(stream(call(0, ...pieces))).filter((event) => event.index === 0);
    expect(events[0]!.content_block).toEqual({ type: "tool_use", id: "call_0", name: "tool0", input: {} });
    expect(events.slice(1, -1).map((event) => event.delta)).toEqual(
      pieces.map((piece) => ({ type: "input_json_delta", partial_json: piece })),
    );
    expect(events.at(-1)!.type).toBe("content_block_stop");
  });

  test("[46] a call without arguments has no delta", () => {
    for (const parts of [call(0), call(0, "")]) {
      const events = eventsOf(stream(parts)).filter((event) => event.index === 0);
      expect(events.map((event) => event.type)).toEqual(["content_block_start", "content_block_stop"]);
    }
  });

  test("[46] a call is closed as soon as it is complete", () => {
    const writer = writerOf();
    writer.opening(1);
    const events = eventsOf(writer.parts(call(0, "{}")));
    expect(events.at(-1)).toEqual({ type: "content_block_stop", index: 0 });
  });

  test("[47] no block is empty or blank; blank text waits for the text it belongs to", () => {
    const parts = [reasoning("\n"), text("\n\n"), ...call(0, "{}"), text(""), text(" "), ...call(1, "{}")];
    const types = (message: { content: { type: string }[] }) => message.content.map((block) => block.type);
    expect(types(messageOf(stream(parts)))).toEqual(["tool_use", "tool_use"]);
    const message = messageOf(stream([text("\n"), reasoning("r"), text("\n"), text("a"), text("\n")]));
    expect(message.content.slice(1)).toEqual([{ type: "text", text: "\n\na\n" }]);
  });

  test("[48] message_delta carries the stop reason and the final usage", () => {
    const events = eventsOf(stream([text("a")]));
    expect(events.at(-2)).toEqual({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: {
        input_tokens: 100,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 900,
        output_tokens: 42,
      },
    });
  });

  test("[49] message_stop is last", () => {
    expect(stream([text("a")]).endsWith('event: message_stop\ndata: {"type":"message_stop"}\n\n')).toBe(true);
  });
});

describe("stop reasons", () => {
  test("[50] end_turn for text, tool_use for a complete call, stop_sequence for the harness's own", () => {
    expect(stopReason([text("a")])).toBe("end_turn");
    expect(stopReason([text("a"), ...call(0, "{}")])).toBe("tool_use");
    expect(messageOf(stream([text("a")], end({ stopSequence: "END" })))).toMatchObject({
      stop_reason: "stop_sequence",
      stop_sequence: "END",
    });
  });

  test("[50] a call that never ended does not make it tool_use", () => {
    expect(stopReason(cutCall(0, '{"a"'))).toBe("end_turn");
  });

  test("[51] a truncated reply is max_tokens, also within a call, also after a complete one", () => {
    const truncated = end({ finish: FinishReason.LENGTH });
    expect(stopReason([text("a")], truncated)).toBe("max_tokens");
    expect(stopReason(cutCall(0, '{"command": "l'), truncated)).toBe("max_tokens");
    expect(stopReason([...call(0, "{}"), ...cutCall(1, "{")], truncated)).toBe("max_tokens");
    expect(messageOf(stream(cutCall(0, '{"command": "l'), truncated)).content).toEqual([
      { type: "tool_use", id: "call_0", name: "tool0", input: {}, input_json: '{"command": "l' },
    ]);
  });
});

test("[52] the reply and its thinking are named after the turn, the calls by the ids they were given", () => {
  const message = messageOf(stream([reasoning("r"), ...call(0, "{}"), reasoning("s"), ...call(1, "{}")]));
  expect(message.id).toBe("msg_trial-t3");
  const names = message.content.map(
    (block: { id?: string; signature?: string }) => block.id ?? block.signature,
  );
  expect(names).toEqual(["trial-t3-0", "call_0", "trial-t3-2", "call_1"]);
});

describe("a whole message", () => {
  test("[53] is what the stream adds up to", () => {
    const message = whole([reasoning("r"), text("\n"), text("a"), ...call(0, '{"b": ', "[1]}"), ...call(1)]);
    expect(message).toEqual({
      id: "msg_trial-t3",
      type: "message",
      role: "assistant",
      model: "any-alias",
      content: [
        { type: "thinking", thinking: "r", signature: "trial-t3-0" },
        { type: "text", text: "\na" },
        { type: "tool_use", id: "call_0", name: "tool0", input: { b: [1] } },
        { type: "tool_use", id: "call_1", name: "tool1", input: {} },
      ],
      stop_reason: "tool_use",
      stop_sequence: null,
      usage: {
        input_tokens: 100,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 900,
        output_tokens: 42,
      },
    });
  });

  test("[53] keeps the spelling of arguments: numbers, order, spaces", () => {
    const spelling = '{ "z": 12345678901234567890, "a": 2.0, "$&": "$1" }';
    expect(writerOf().whole(call(0, spelling), end())).toContain(`"input":${spelling}}`);
  });

  test("[53] wraps arguments that are no object, and they are read back as they were", () => {
    for (const raw of ['{"command": "ls', "[1]", "7", '"x"', "null", "no json"]) {
      const { content } = whole(call(0, raw)) as { content: unknown };
      const { conversation } = messagesDialect.read({ messages: [{ role: "assistant", content }] });
      expect(conversation.messages[0]).toMatchObject({ toolCalls: [{ id: "call_0", arguments: raw }] });
    }
  });

  const part = fc.oneof(
    fc.record({ kind: fc.constantFrom("text" as const, "reasoning" as const), text: fc.string() }),
    fc.record({ kind: fc.constantFrom("text" as const), text: fc.constantFrom("", " ", "\n\n", "a") }),
    fc.array(fc.string({ maxLength: 4 }), { maxLength: 3 }),
  );

  test("[53] any reply: the stream keeps the protocol and says what the whole message says", () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), fc.boolean(), (drawn, isCut) => {
        let calls = 0;
        const parts = drawn.flatMap((one): readonly ReplyPart[] =>
          Array.isArray(one) ? call(calls++, ...one) : [one],
        );
        if (isCut) parts.push(...cutCall(calls, "{"));
        const ending = end({ finish: isCut ? FinishReason.LENGTH : FinishReason.STOP });
        const streamed = messageOf(stream(parts, ending));
        const message = whole(parts, ending) as { content: { type: string; text?: string }[] };
        const shape = ({ content, ...rest }: { content: { type: string }[] }) => [
          rest,
          content.map((block) => (block.type === "tool_use" ? block.type : block)),
        ];
        expect(shape(streamed)).toEqual(shape(message));
        const sampled = parts.map((one) => (one.kind === "text" ? one.text : "")).join("");
        const shown = message.content.map((block) => block.text ?? "").join("");
        if (!parts.some((one) => one.kind !== "text"))
          expect(shown).toBe(echoedText(request, sampled, false));
      }),
      { numRuns: 500 },
    );
  });
});

describe("[54] a reply is never without a visible block", () => {
  test.each<[name: string, parts: ReplyPart[]]>([
    ["nothing at all", []],
    ["blank text", [text("\n\n")]],
    ["thinking only", [reasoning("hm"), text("\n")]],
  ])("%s gets a text, which is what the turn is known by", (_name, parts) => {
    const message = messageOf(stream(parts));
    const shown = message.content.filter((block: { type: string }) => block.type !== "thinking");
    expect(shown).toEqual([{ type: "text", text: "[no reply]" }]);
    expect(whole(parts).content).toEqual(message.content);
    const sampled = parts.map((one) => (one.kind === "text" ? one.text : "")).join("");
    const echo = messagesDialect.read({ messages: [{ role: "assistant", content: message.content }] });
    expect(echo.conversation.messages[0]!.text).toBe(echoedText(request, sampled, false));
  });

  test("a truncated thought is still max_tokens, so that the harness asks to go on", () => {
    expect(stopReason([reasoning("hm")], end({ finish: FinishReason.LENGTH }))).toBe("max_tokens");
  });

  test("calls and text stand for themselves", () => {
    expect(messageOf(stream(call(0, "{}"))).content).toHaveLength(1);
    expect(echoedText(request, "", true)).toBe("");
    expect(echoedText(request, " a", false)).toBe(" a");
    expect(echoedText({ dialect: "openai-chat" }, "", false)).toBe("");
  });
});

describe("[55] a fault in mid-stream", () => {
  const fault = new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "engine w3 at 10.0.0.7 died" });

  test("is an error event, and no end of the message", () => {
    const writer = writerOf();
    const said = writer.opening(1) + writer.parts([text("half a s")]) + writer.failing(fault);
    const events = eventsOf(said);
    expect(events.at(-1)).toEqual({
      type: "error",
      error: {
        type: "overloaded_error",
        message: "Service unavailable: the model is overloaded or away for a moment. Try again.",
      },
    });
    expect(said).not.toContain("message_stop");
  });

  test("is the same after a complete block: only a captured reply is shown to its end", () => {
    const writer = writerOf();
    const said = writer.opening(1) + writer.parts(call(0, "{}")) + writer.failing(fault);
    expect(eventsOf(said).map((event) => event.type)).toEqual([
      "message_start",
      "ping",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "error",
    ]);
  });
});

test("[67] the parts of the usage add up to the prompt, however much of it was kept", () => {
  for (const cachedTokens of [0, 1, 999, 1000, 5000]) {
    const { usage } = messageOf(stream([text("a")], end({ cachedTokens })));
    expect(usage.input_tokens + usage.cache_read_input_tokens).toBe(1000);
    expect(usage.input_tokens).toBeGreaterThan(0);
  }
});
