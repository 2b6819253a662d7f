/** Parsers and templates by themselves: what holds for every cut and every template. */
import type { Message, SampledPart, ToolSchema } from "@mortise/capture";
import { ChatTemplate, Tokenizer, tokenizerFiles, trainTokenizer } from "@mortise/policy";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DEMO_SPECIAL_TOKENS, demoChatTemplate } from "../../../packages/tasks/src/demo/chat-template.js";
import { Renderer } from "../src/render/renderer.js";
import { toolFormatOf } from "../src/tools/format.js";
import { hermes } from "../src/tools/hermes.js";
import { positional } from "../src/tools/positional.js";
import { ReplyParser } from "../src/tools/reply-parser.js";
import { FORGETFUL_TEMPLATE, HERMES_TEMPLATE } from "./templates.js";

const EDIT: ToolSchema = {
  name: "edit",
  description: "",
  parameters: {
    type: "object",
    properties: { old: { type: "string" }, new: { type: "string" }, count: { type: "integer" } },
    required: ["old", "new"],
  },
};

function policy(chatTemplate: string) {
  const trained = trainTokenizer(["user assistant edit done"], {
    maxMerges: 10,
    specialTokens: DEMO_SPECIAL_TOKENS,
  });
  const files = tokenizerFiles(trained, {
    eosToken: "<|im_end|>",
    padToken: "<|endoftext|>",
    chatTemplate,
    maxLength: 512,
  });
  const tokenizer = new Tokenizer(files);
  const eosIds = new Set([tokenizer.idOf("<|im_end|>")!]);
  return {
    files,
    tokenizer,
    eosIds,
    renderer: new Renderer({ chatTemplate: new ChatTemplate(files), tokenizer, eosIds }),
  };
}

describe("call syntaxes", () => {
  test.each([
    ["edit a => b", { old: "a", new: "b" }],
    ["edit a  b =>  c => 3", { old: "a  b", new: " c", count: 3 }],
    ["edit el==lim => el>lim", { old: "el==lim", new: "el>lim" }],
  ])("positional: %s", (body, given) => {
    expect(JSON.parse(positional.parse(body, [EDIT])!.arguments)).toEqual(given);
  });

  test.each([
    "",
    "edit",
    "edit a",
    "other a => b",
    "edit a => b => x",
    "edit a => b => 1 => 2",
    "edit a => b => 1.5",
  ])("positional refuses %j", (body) => expect(positional.parse(body, [EDIT])).toBeUndefined());

  test("hermes keeps the argument text as it was written", () => {
    const body = '\n{"name": "edit", "arguments": {"old":  "\\u0061", "n": 2.0}}\n';
    expect(hermes.parse(body, [])).toEqual({ name: "edit", arguments: '{"old":  "\\u0061", "n": 2.0}' });
    expect(hermes.parse('{"arguments": {"a": 1}, "name": "f"}', [])).toEqual({
      name: "f",
      arguments: '{"a":1}',
    });
  });

  test.each(["", "{", "[]", '{"name": 1}', '{"name": "f", "arguments": "x"}', '{"arguments": {}}'])(
    "hermes refuses %j",
    (body) => expect(hermes.parse(body, [])).toBeUndefined(),
  );

  test("the syntax is recognised by rendering a call, or named; an unknown name is refused", () => {
    const format = (template: string, config?: object) => {
      const { files, renderer } = policy(template);
      return toolFormatOf(JSON.stringify({ ...JSON.parse(files.tokenizerConfigJson), ...config }), renderer)
        ?.name;
    };
    expect(format(demoChatTemplate)).toBe("positional");
    expect(format(HERMES_TEMPLATE)).toBe("hermes");
    expect(format("{%- for m in messages -%}{{ m.content }}{%- endfor -%}")).toBeUndefined();
    expect(format(HERMES_TEMPLATE, { mortise: { tool_format: "positional" } })).toBe("positional");
    expect(() => format(HERMES_TEMPLATE, { mortise: { tool_format: "xml" } })).toThrow(
      expect.objectContaining({ fix: expect.stringContaining("positional, hermes") }),
    );
  });
});

describe("the reply parser", () => {
  const { tokenizer, eosIds } = policy(demoChatTemplate);
  const syntax = { tokenizer, format: positional, tools: [EDIT], stopIds: eosIds };
  const piece = fc.constantFrom(
    "a",
    "<",
    "<tool",
    "<tool_call>",
    "</tool_call>",
    "edit x => y",
    "é",
    " ",
    "<|im_start|>",
  );

  test("gives the same parts however the ids are cut, and loses no text", () => {
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 4 })),
        (pieces, cuts) => {
          const text = pieces.join("");
          const ids = [...tokenizer.encode(text)];
          const whole = new ReplyParser(syntax);
          const expected = [...whole.push(ids), ...whole.end()];
          const parser = new ReplyParser(syntax);
          const parts = [];
          for (let at = 0, k = 0; at < ids.length; k++) {
            const length = cuts[k % Math.max(1, cuts.length)] ?? 1;
            parts.push(...parser.push(ids.slice(at, at + length)));
            at += length;
          }
          parts.push(...parser.end());
          const respell = (part: SampledPart) => {
            if (part.kind === "text") return part.text;
            if (part.kind !== "call-arguments") return "";
            const given = JSON.parse(part.text) as Record<string, string>;
            return `<tool_call>edit ${Object.values(given).join(" => ")}</tool_call>`;
          };
          const spell = (list: typeof parts) => list.map(respell).join("");
          expect(spell(parts)).toBe(text);
          const calls = (list: typeof parts) => list.filter((part) => part.kind === "call-end");
          expect(calls(parts)).toEqual(calls(expected));
        },
      ),
    );
  });

  test("counts ids to the end of each call and hides the end-of-turn token", () => {
    const text = "<tool_call>edit x => y</tool_call>";
    const ids = [...tokenizer.encode(`${text}${text}<|im_end|>`)];
    const parser = new ReplyParser(syntax);
    const ends = [...parser.push(ids), ...parser.end()].flatMap((part) =>
      part.kind === "call-end" ? [part.tokenEnd] : [],
    );
    expect(ends).toEqual([tokenizer.encode(text).length, ids.length - 1]);
  });
});

describe("the renderer", () => {
  const user: Message = { role: "user", text: "fix" };
  const reply: Message = { role: "assistant", text: "done", reasoning: "", toolCalls: [] };
  const result = (id: string): Message => ({ role: "tool", text: "ok", toolCallId: id });

  test.each([
    ["demo", demoChatTemplate],
    ["hermes", HERMES_TEMPLATE],
  ])("%s: an extension equals rendering whole", (_, template) => {
    const { renderer, tokenizer } = policy(template);
    expect(renderer.isAppendOnly).toBe(true);
    for (const added of [[user], [result("a")], [result("a"), result("b")], [result("a"), user]]) {
      const parent = renderer.renderWhole({ messages: [user], tools: [EDIT] });
      const whole = renderer.renderWhole({ messages: [user, reply, ...added], tools: [EDIT] });
      const sampled = tokenizer.encode("done<|im_end|>");
      const suffix = renderer.renderExtension(added, [EDIT], true);
      expect([...parent.ids, ...sampled, ...suffix]).toEqual([...whole.ids]);
    }
  });

  test("a template that rewrites history is found out", () => {
    expect(policy(FORGETFUL_TEMPLATE).renderer.isAppendOnly).toBe(false);
  });

  test("arguments that are no JSON object are rendered, not refused", () => {
    const calls = [{ id: "c", name: "edit", arguments: "{broken" }];
    const messages: Message[] = [
      user,
      { role: "assistant", text: "", reasoning: "", toolCalls: calls },
      result("c"),
    ];
    expect(policy(HERMES_TEMPLATE).renderer.renderWhole({ messages, tools: [] }).text).toContain("{broken");
  });
});
