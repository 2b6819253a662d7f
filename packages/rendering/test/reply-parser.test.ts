/** The reply parser: reasoning, and what holds for every text and every cut. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hermes } from "../src/tools/hermes.js";
import { llamaJson } from "../src/tools/llama-json.js";
import { positional } from "../src/tools/positional.js";
import { qwenXml } from "../src/tools/qwen-xml.js";
import type { ReplySyntax } from "../src/tools/reply-parser.js";
import type { ReasoningMarks } from "../src/tools/types.js";
import { callsOf, EDIT, partsOf, textOf, tinyCheckpoint, UNMARKED_TOKENS } from "./checkpoint.js";
import { HERMES_TEMPLATE } from "./templates.js";

const THINK: ReasoningMarks = { open: "<think>", close: "</think>" };
const marked = tinyCheckpoint(HERMES_TEMPLATE);
const unmarked = tinyCheckpoint(HERMES_TEMPLATE, UNMARKED_TOKENS);

function syntaxOf(from: typeof marked, over: Partial<ReplySyntax> = {}): ReplySyntax {
  const { tokenizer, eosIds } = from;
  return { tokenizer, format: hermes, tools: [EDIT], reasoning: THINK, stopIds: eosIds, ...over };
}

function read(text: string, over: Partial<ReplySyntax> = {}, from = marked) {
  return partsOf(syntaxOf(from, over), [...from.tokenizer.encode(text)]);
}

describe("reasoning", () => {
  test.each([
    ["marks that are tokens", marked],
    ["marks that are spelled", unmarked],
  ])("%s: parted from the text, without the line breaks around the marks", (_, from) => {
    const { parts } = read("<think>\nOne.\n\nTwo.\n</think>\n\nDone.\n", {}, from);
    expect(parts).toEqual([
      { kind: "reasoning", text: "One.\n\nTwo." },
      { kind: "text", text: "Done.\n" },
    ]);
  });

  test("may begin in the prompt", () => {
    const { parts } = read("One.\n</think>\n\nDone.", { opensInReasoning: true });
    expect(parts).toEqual([
      { kind: "reasoning", text: "One." },
      { kind: "text", text: "Done." },
    ]);
  });

  test("may stand between text and calls, or be empty", () => {
    const { parts } = read('<think>\n\n</think>\n\na<think>b</think>\n<tool_call>{"name": "f"}</tool_call>');
    expect(parts.slice(0, 2)).toEqual([
      { kind: "text", text: "a" },
      { kind: "reasoning", text: "b" },
    ]);
    expect(callsOf(parts)).toHaveLength(1);
  });

  test("that is cut off is reasoning to its end", () => {
    expect(read("<think>\nOne.\n").parts).toEqual([{ kind: "reasoning", text: "One.\n" }]);
    expect(read("<think>One.</thi", {}, unmarked).parts).toEqual([{ kind: "reasoning", text: "One.</thi" }]);
  });

  test("marks that mean nothing where they stand are text", () => {
    expect(textOf(read("a</think>b").parts)).toBe("a</think>b");
    expect(textOf(read("<think>a<think>b").parts, "reasoning")).toBe("a<think>b");
    expect(textOf(read("<think>a</think>", { reasoning: undefined }).parts)).toBe("<think>a</think>");
  });

  test("counts its ids, marks included", () => {
    const count = (text: string, over: Partial<ReplySyntax> = {}) => read(text, over).reasoningTokens;
    const length = (text: string) => marked.tokenizer.encode(text).length;
    expect(count("<think>abc</think>done")).toBe(length("<think>abc</think>"));
    expect(count("abc</think>done", { opensInReasoning: true })).toBe(length("abc</think>"));
    expect(count("<think>abc")).toBe(length("<think>abc"));
    expect(count("done")).toBe(0);
    expect(count('<think>ab<tool_call>{"name": "f"}</tool_call>c')).toBe(length("<think>ab"));
    expect(count("<think>ab<tool_call>no</tool_call>c")).toBe(length("<think>ab<tool_call>no</tool_call>c"));
  });

  test("ends with a call inside it, which is noted; its closing mark then means nothing", () => {
    const { parts, notes } = read('<think>a\n<tool_call>{"name": "f"}</tool_call>\n</think>\n\ndone');
    expect(notes).toEqual(["call-inside-reasoning"]);
    expect(textOf(parts, "reasoning")).toBe("a");
    expect(textOf(parts)).toBe("done");
    expect(callsOf(parts)).toEqual([{ name: "f", arguments: "{}", isEnded: true }]);
    expect(read("<think>a</think>b").notes).toEqual([]);
  });

  test("goes on when what looked like a call inside it is none", () => {
    const { parts, notes } = read("<think>the <tool_call> mark</think>done");
    expect(textOf(parts, "reasoning")).toBe("the <tool_call> mark");
    expect(textOf(parts)).toBe("done");
    expect(notes).toEqual([]);
  });
});

describe("for every text", () => {
  const formats = { hermes, qwenXml, positional, llamaJson };
  const checkpoints = { marked, unmarked };
  /** Each `#` becomes a word of its own. */
  const piece = fc.constantFrom(
    "#",
    " ",
    "\n",
    "é🙂",
    "<",
    "<tool",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    '<tool_call>\n{"name": "edit", "arguments": {"old": "#"}}\n</tool_call>',
    '<tool_call>{"name": "edit", "arguments": "#',
    '{"name": "edit", "arguments": {"old": "#"',
    "<tool_call>\n<function=edit>\n<parameter=old>\n#\n</parameter>\n</function>\n</tool_call>",
    "<tool_call><function=edit><parameter=old>#",
    "<tool_call>edit # => #</tool_call>",
    '{"name": "edit", "parameters": {"old": "#"}}',
    "}",
    "</function>",
    "<|im_start|>",
  );
  const pieces = fc.array(piece, { maxLength: 10 });
  const setting = fc.record({
    format: fc.constantFrom(...(Object.keys(formats) as (keyof typeof formats)[])),
    opensInReasoning: fc.boolean(),
    from: fc.constantFrom(...(Object.keys(checkpoints) as (keyof typeof checkpoints)[])),
    ends: fc.boolean(),
  });

  type Setting = typeof setting extends fc.Arbitrary<infer S> ? S : never;
  const idsOf = (text: string, on: Setting) => [...checkpoints[on.from].tokenizer.encode(text)];
  const syntaxFor = (on: Setting) =>
    syntaxOf(checkpoints[on.from], {
      format: formats[on.format],
      opensInReasoning: on.opensInReasoning,
    });

  function source(list: readonly string[]): { text: string; words: string[] } {
    const words: string[] = [];
    const text = list.join("").replaceAll("#", () => {
      words.push(`w${words.length}w`);
      return words.at(-1)!;
    });
    return { text, words };
  }

  test("the same ids give the same parts however they are cut", () => {
    fc.assert(
      fc.property(
        pieces,
        setting,
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
        (list, on, cuts) => {
          const text = source(list).text + (on.ends ? "<|im_end|>" : "");
          const ids = idsOf(text, on);
          const syntax = syntaxFor(on);
          const one = partsOf(syntax, ids, cuts);
          const other = partsOf(syntax, ids, [ids.length]);
          expect(one.parts).toEqual(other.parts);
          expect(one.reasoningTokens).toBe(other.reasoningTokens);
          expect(one.notes).toEqual(other.notes);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("every word the policy sampled is said once: as text, reasoning or argument", () => {
    fc.assert(
      fc.property(pieces, setting, (list, on) => {
        const { text, words } = source(list);
        const { parts } = partsOf(syntaxFor(on), idsOf(on.ends ? `${text}<|im_end|>` : text, on));
        const said = parts.map((part) => ("text" in part ? part.text : "")).join(" ");
        for (const word of words) expect(said.split(word).length - 1, text).toBe(1);
      }),
      { numRuns: 1000 },
    );
  });

  test("calls are numbered from 0, do not interleave, and end in the order of their ids", () => {
    fc.assert(
      fc.property(pieces, setting, (list, on) => {
        const ids = idsOf(source(list).text, on);
        const { parts } = partsOf(syntaxFor(on), ids);
        let open: number | undefined;
        let started = 0;
        let lastEnd = 0;
        for (const part of parts) {
          if (part.kind === "call-start") {
            expect([open, part.call]).toEqual([undefined, started++]);
            open = part.call;
          } else if (part.kind === "call-arguments") expect(part.call).toBe(open);
          else if (part.kind === "call-end") {
            expect(part.call).toBe(open);
            expect(part.tokenEnd).toBeGreaterThan(lastEnd);
            expect(part.tokenEnd).toBeLessThanOrEqual(ids.length);
            lastEnd = part.tokenEnd;
            open = undefined;
          } else expect(open).toBeUndefined();
        }
      }),
      { numRuns: 500 },
    );
  });

  test("ids that are no text at all are read without loss of the calls around them", () => {
    const { tokenizer } = marked;
    const halfCharacter = [...tokenizer.encode("é")].slice(0, 1);
    const call = [...tokenizer.encode('<tool_call>{"name": "f"}</tool_call>')];
    const { parts } = partsOf(syntaxOf(marked), [...halfCharacter, ...call, ...halfCharacter]);
    expect(parts[0]).toEqual({ kind: "text", text: "\ufffd" });
    expect(parts.at(-1)).toEqual({ kind: "text", text: "\ufffd" });
    expect(callsOf(parts)).toEqual([{ name: "f", arguments: "{}", isEnded: true }]);
  });
});
