/** Call syntaxes over token ids: what a harness sees of well-formed, malformed and truncated calls. */
import type { ToolSchema } from "@mortise/capture";
import { describe, expect, test } from "vitest";
import { hermes } from "../src/tools/hermes.js";
import { llamaJson } from "../src/tools/llama-json.js";
import { positional } from "../src/tools/positional.js";
import { qwenXml } from "../src/tools/qwen-xml.js";
import type { ToolFormat } from "../src/tools/types.js";
import { callsOf, EDIT, partsOf, textOf, tinyCheckpoint, UNMARKED_TOKENS } from "./checkpoint.js";
import { HERMES_TEMPLATE } from "./templates.js";

const marked = tinyCheckpoint(HERMES_TEMPLATE);
const unmarked = tinyCheckpoint(HERMES_TEMPLATE, UNMARKED_TOKENS);

function read(
  format: ToolFormat,
  text: string,
  options: { tools?: readonly ToolSchema[]; ends?: boolean; from?: typeof marked } = {},
) {
  const { tokenizer, eosIds } = options.from ?? marked;
  const ids = [...tokenizer.encode(options.ends === false ? text : `${text}<|im_end|>`)];
  const tools = options.tools ?? [EDIT];
  return partsOf({ tokenizer, format, tools, stopIds: eosIds }, ids);
}

const call = (body: string) => `<tool_call>${body}</tool_call>`;
const xml = (...parameters: [string, string][]) =>
  `\n<function=edit>\n${parameters.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join("")}</function>\n`;

describe("positional", () => {
  test.each([
    ["edit a => b", { old: "a", new: "b" }],
    ["edit a  b =>  c => 3", { old: "a  b", new: " c", count: 3 }],
    ["edit el==lim => el>lim", { old: "el==lim", new: "el>lim" }],
  ])("%s", (body, given) => {
    const [found] = callsOf(read(positional, call(body)).parts);
    expect(JSON.parse(found!.arguments)).toEqual(given);
  });

  test.each([
    "",
    "edit",
    "edit a",
    "other a => b",
    "edit a => b => x",
    "edit a => b => 1 => 2",
    "edit a => b => 1.5",
  ])("%j is text", (body) => {
    const { parts } = read(positional, call(body));
    expect(parts).toEqual([{ kind: "text", text: call(body) }]);
  });
});

describe("hermes", () => {
  test("passes the argument text on as it was written", () => {
    const given = '{"old":  "\\u0061", "n": 2.0, "big": 12345678901234567890}';
    const { parts } = read(hermes, call(`\n{"name": "edit", "arguments": ${given}}\n`));
    expect(callsOf(parts)).toEqual([{ name: "edit", arguments: given, isEnded: true }]);
  });

  test.each([
    ["arguments before the name", '{"arguments": {"a": "}"}, "name": "f"}', '{"a": "}"}'],
    ["other members", '{"id": [1, "x"], "name": "f", "arguments": {}, "more": null}', "{}"],
    ["parameters in place of arguments", '{"name": "f", "parameters": {"a": 1}}', '{"a": 1}'],
    ["no arguments", '{"name": "f"}', "{}"],
    ["no braces at the end", '{"name": "f", "arguments": {"a": 1}', '{"a": 1}'],
    ["arguments that are text", '{"name": "f", "arguments": "{\\"a\\": 1}"}', '"{\\"a\\": 1}"'],
    ["a scalar", '{"name": "f", "arguments": 3}', "3"],
    ["a name with escapes", '{"name": "\\u0066", "arguments": {}}', "{}"],
    [
      "brackets and marks in strings",
      '{"name": "f", "arguments": {"a": "]}<tool_call>"}}',
      '{"a": "]}<tool_call>"}',
    ],
  ])("%s", (_, body, given) => {
    expect(callsOf(read(hermes, call(body)).parts)).toEqual([{ name: "f", arguments: given, isEnded: true }]);
  });

  test.each([
    ["unquoted member", '{"name": "f", arguments: {"a": 1}}', 'arguments: {"a": 1}}'],
    ["open object", '{"name": "f", "arguments": {"a": 1', '{"a": 1'],
    ["open string", '{"name": "f", "arguments": {"a": "1}}', '{"a": "1}}'],
    ["nothing", '{"name": "f", "arguments": }', "}"],
  ])("what is malformed behind the name reaches the harness as it is: %s", (_, body, given) => {
    expect(callsOf(read(hermes, call(body)).parts)).toEqual([{ name: "f", arguments: given, isEnded: true }]);
  });

  test.each(["", "{", "[]", "hello", '{"name": 1}', '{"name": ""}', '{"arguments": {}}', "{'name': 'f'}"])(
    "without a name it stays text: %j",
    (body) => {
      const text = `a ${call(body)} b`;
      expect(read(hermes, text).parts).toEqual([{ kind: "text", text }]);
    },
  );

  test("the call is announced when its name is closed, arguments follow as they come", () => {
    const { tokenizer, eosIds } = marked;
    const body = '<tool_call>{"name": "edit", "arguments": {"old": "aaa"';
    const { raw } = partsOf({ tokenizer, format: hermes, tools: [], stopIds: eosIds }, [
      ...tokenizer.encode(body),
    ]);
    expect(raw[0]).toEqual({ kind: "call-start", call: 0, name: "edit", tokenStart: 0 });
    expect(raw.slice(1).length).toBeGreaterThan(5);
    expect(callsOf(raw)).toEqual([{ name: "edit", arguments: '{"old": "aaa"', isEnded: false }]);
  });

  test("several calls in a row, with text before and between; glue between marks is no text", () => {
    const one = call('\n{"name": "f", "arguments": {}}\n');
    const { parts } = read(hermes, `First.\n${one}\n${one}\n\nthen\n${one}\n`);
    expect(parts.filter((part) => part.kind !== "call-arguments")).toEqual([
      { kind: "text", text: "First." },
      { kind: "call-start", call: 0, name: "f", tokenStart: expect.any(Number) },
      { kind: "call-end", call: 0, tokenEnd: expect.any(Number) },
      { kind: "call-start", call: 1, name: "f", tokenStart: expect.any(Number) },
      { kind: "call-end", call: 1, tokenEnd: expect.any(Number) },
      { kind: "text", text: "then" },
      { kind: "call-start", call: 2, name: "f", tokenStart: expect.any(Number) },
      { kind: "call-end", call: 2, tokenEnd: expect.any(Number) },
    ]);
  });

  test("a call end counts ids up to its closing mark; the end-of-turn token is not shown", () => {
    const { tokenizer } = marked;
    const text = call('{"name": "f", "arguments": {}}');
    const { parts } = read(hermes, text + text);
    const ends = parts.flatMap((part) => (part.kind === "call-end" ? [part.tokenEnd] : []));
    const starts = parts.flatMap((part) => (part.kind === "call-start" ? [part.tokenStart] : []));
    expect(starts).toEqual([0, ends[0]]);
    expect(ends).toEqual([tokenizer.encode(text).length, tokenizer.encode(text + text).length]);
    expect(textOf(parts)).toBe("");
  });

  test("a call that lacks only its closing mark is whole when the policy ended its turn or began another", () => {
    const bare = '<tool_call>{"name": "f", "arguments": {}}';
    expect(callsOf(read(hermes, bare).parts)).toEqual([{ name: "f", arguments: "{}", isEnded: true }]);
    expect(callsOf(read(hermes, bare, { ends: false }).parts)[0]!.isEnded).toBe(false);
    const { parts } = read(hermes, `${bare}\n${bare}</tool_call>`);
    expect(callsOf(parts).map((one) => one.isEnded)).toEqual([true, true]);
    const [first] = parts.flatMap((part) => (part.kind === "call-end" ? [part.tokenEnd] : []));
    expect(first).toBe(marked.tokenizer.encode(bare).length);
  });

  test("what stands between a call and its closing mark is text behind it", () => {
    const { parts } = read(hermes, `<tool_call>{"name": "f", "arguments": {}}\n{"name": "g"} x</tool_call>`);
    expect(callsOf(parts)).toEqual([{ name: "f", arguments: "{}", isEnded: true }]);
    expect(textOf(parts)).toBe('{"name": "g"} x');
  });

  test("what spells no call may be followed by one", () => {
    const { parts } = read(hermes, `<tool_call>{ ${call('{"name": "f"}')}`);
    expect(textOf(parts)).toBe("<tool_call>{ ");
    expect(callsOf(parts)).toEqual([{ name: "f", arguments: "{}", isEnded: true }]);
  });

  test("where the mark is a token, its spelling is text; where it is none, its spelling is the mark", () => {
    const text = call('{"name": "f"}');
    const spelled = ["<", ...text.slice(1)].flatMap((piece) => [...marked.tokenizer.encode(piece)]);
    const syntax = { tokenizer: marked.tokenizer, format: hermes, tools: [], stopIds: marked.eosIds };
    expect(partsOf(syntax, spelled).parts).toEqual([{ kind: "text", text }]);
    expect(callsOf(read(hermes, text, { from: unmarked }).parts)).toHaveLength(1);
  });
});

describe("qwen-xml", () => {
  const TYPED: ToolSchema = {
    name: "edit",
    description: "",
    parameters: {
      type: "object",
      properties: {
        text: { type: "string" },
        count: { type: "integer" },
        share: { type: "number" },
        isOn: { type: "boolean" },
        list: { type: "array" },
        maybe: { anyOf: [{ type: "string" }, { type: "null" }] },
        either: { type: ["integer", "string"] },
        point: { $ref: "#/$defs/Point" },
      },
      $defs: { Point: { type: "object" } },
    },
  };
  const given = (...parameters: [string, string][]) =>
    callsOf(read(qwenXml, call(xml(...parameters)), { tools: [TYPED] }).parts)[0]!.arguments;

  test.each([
    ["text", 'a\n  "b" \\ é🙂\n', '{"text":"a\\n  \\"b\\" \\\\ é🙂\\n"}'],
    ["text", "", '{"text":""}'],
    ["text", "12", '{"text":"12"}'],
    ["text", "</param", '{"text":"</param"}'],
    ["count", "12", '{"count":12}'],
    ["count", "many", '{"count":"many"}'],
    ["share", "2.0", '{"share":2.0}'],
    ["isOn", "True", '{"isOn":true}'],
    ["list", '[1, "a"]', '{"list":[1, "a"]}'],
    ["list", "[1", '{"list":"[1"}'],
    ["maybe", "None", '{"maybe":null}'],
    ["maybe", "nullable", '{"maybe":"nullable"}'],
    ["maybe", "nul", '{"maybe":"nul"}'],
    ["either", "7", '{"either":7}'],
    ["either", "seven", '{"either":"seven"}'],
    ["point", '{"x": 1}', '{"point":{"x": 1}}'],
    ["unknown", "7", '{"unknown":"7"}'],
  ])("%s: %j", (key, value, expected) => expect(given([key, value])).toBe(expected));

  test("several parameters, and none", () => {
    expect(given(["text", "a"], ["count", "1"])).toBe('{"text":"a","count":1}');
    expect(given()).toBe("{}");
  });

  test("values without line breaks around them", () => {
    const body = "<function=edit><parameter=text>a</parameter><parameter=count>1</parameter></function>";
    expect(callsOf(read(qwenXml, call(body), { tools: [TYPED] }).parts)[0]!.arguments).toBe(
      '{"text":"a","count":1}',
    );
  });

  test("a string is passed on while it arrives, a number when it is complete", () => {
    const start = "<tool_call>\n<function=edit>\n<parameter=";
    const cut = (rest: string) => read(qwenXml, start + rest, { tools: [TYPED], ends: false }).raw;
    expect(callsOf(cut("text>\nabc"))).toEqual([{ name: "edit", arguments: '{"text":"abc', isEnded: false }]);
    expect(callsOf(cut("count>\n12"))).toEqual([{ name: "edit", arguments: '{"count":', isEnded: false }]);
    expect(cut("text>\nabcdef").filter((part) => part.kind === "call-arguments").length).toBeGreaterThan(3);
  });

  test.each([
    ["an open value", "<function=edit>\n<parameter=text>\nab\n", '{"text":"ab\\n'],
    ["no end tag", "<function=edit>\n<parameter=text>\nab\n</parameter>\n", '{"text":"ab"}'],
    ["JSON in place of parameters", '<function=edit>\n{"text": "a"}\n</function>', '{"text": "a"}\n'],
    [
      "words between parameters",
      "<function=edit>\n<parameter=text>\na\n</parameter> and <x>\n</function>",
      '{"text":"a"and <x>\n',
    ],
    [
      "a parameter without a name",
      "<function=edit>\n<parameter=>\na\n</parameter>\n</function>",
      "<parameter=>\na\n</parameter>\n",
    ],
  ])("what is malformed reaches the harness as it is: %s", (_, body, expected) => {
    expect(callsOf(read(qwenXml, call(body), { tools: [TYPED] }).parts)).toEqual([
      { name: "edit", arguments: expected, isEnded: true },
    ]);
  });

  test.each(["", "hello", '{"name": "f"}', "<function=>", "<function=a\nb>", "<func", "<parameter=a>"])(
    "without a name it stays text: %j",
    (body) => {
      const { parts } = read(qwenXml, call(body));
      expect(parts).toEqual([{ kind: "text", text: call(body) }]);
    },
  );
});

describe("llama-json", () => {
  const one = '{"name": "f", "parameters": {"a": "}"}}';

  test("the reply is one bare call; it ends with its object", () => {
    const { parts } = read(llamaJson, ` ${one}`);
    expect(callsOf(parts)).toEqual([{ name: "f", arguments: '{"a": "}"}', isEnded: true }]);
  });

  test("behind <|python_tag|> too, which is not shown", () => {
    const { parts } = read(llamaJson, `<|python_tag|>${one}`);
    expect(textOf(parts)).toBe("");
    expect(callsOf(parts)).toHaveLength(1);
  });

  test.each(["{ not a call", "Use {} here", `Text first. ${one}`, "<|python_tag|>print(1)"])(
    "%j is text",
    (text) => {
      expect(read(llamaJson, text).parts).toEqual([{ kind: "text", text }]);
    },
  );

  test("what follows the call is text", () => {
    const { parts } = read(llamaJson, `${one}; ${one}`);
    expect(callsOf(parts)).toHaveLength(1);
    expect(textOf(parts)).toBe(`; ${one}`);
  });

  test("a truncated call has no end", () => {
    expect(callsOf(read(llamaJson, one.slice(0, -4), { ends: false }).parts)).toEqual([
      { name: "f", arguments: '{"a": "', isEnded: false },
    ]);
  });
});
