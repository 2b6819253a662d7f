/** Demonstrations become exactly the ids the proxy would render, with the loss on what the policy samples. */
import { ChatTemplate, Tokenizer } from "@mortise/policy";
import { describe, expect, test } from "vitest";
import { demonstrationRows } from "../src/compute/demonstrations.js";
import { CHAT_TEMPLATE, tinyFiles } from "./support/tiny-policy.js";

function rendererOf(template = CHAT_TEMPLATE) {
  const { files } = tinyFiles(template);
  const tokenizer = new Tokenizer(files);
  return {
    tokenizer,
    chatTemplate: new ChatTemplate(files),
    eosIds: new Set([tokenizer.idOf("<|im_end|>")!]),
  };
}
const renderer = rendererOf();
const options = { promptWeight: 0.5, maxTokens: 128 };
const line = (value: unknown) => `${JSON.stringify(value)}\n`;

const call = { id: "c0", type: "function", function: { name: "edit", arguments: '{"old":"sum"}' } };
const messages = [
  { role: "user", content: "fix" },
  { role: "assistant", content: null, tool_calls: [call] },
  { role: "tool", content: "ok", tool_call_id: "c0" },
  { role: "assistant", content: "done" },
];

/** The text of the tokens that carry a given weight. */
function spoken(row: { ids: Int32Array; weights: Float32Array }, weight: number): string {
  return renderer.tokenizer.decode([...row.ids].filter((_, t) => row.weights[t] === weight));
}

describe("demonstrations", () => {
  test("replies with their end token weigh 1, glue and everything else the prompt weight", () => {
    const [rows] = demonstrationRows(line({ messages }), "d.jsonl", renderer, options);
    expect(rows).toHaveLength(1);
    expect(spoken(rows![0]!, 1)).toBe("[edit sum]<|im_end|>done<|im_end|>");
    expect(renderer.tokenizer.decode(rows![0]!.ids)).toBe(
      "<|im_start|>user\nfix<|im_end|>\n<|im_start|>assistant\n[edit sum]<|im_end|>\n<|im_start|>tool\nok<|im_end|>\n<|im_start|>assistant\ndone<|im_end|>",
    );
  });

  test("where the template rewrites history, each reply stands behind the context it is sampled under", () => {
    const forgetful = CHAT_TEMPLATE.replace(
      "{%- if message.content -%}",
      "{%- if message.role == 'assistant' and not loop.last -%}{{ '~' }}{%- elif message.content -%}",
    );
    const talk = [
      messages[0]!,
      { role: "assistant", content: "sum" },
      { role: "user", content: "ok" },
      messages[3]!,
    ];
    const [rows] = demonstrationRows(line({ messages: talk }), "d.jsonl", rendererOf(forgetful), options);
    expect(rows!.map((row) => spoken(row, 1))).toEqual(["sum<|im_end|>", "done<|im_end|>"]);
    expect(renderer.tokenizer.decode(rows![1]!.ids)).toContain("assistant\n~<|im_end|>");
  });

  test("each fault names its line", () => {
    const good = line({ messages });
    const faults: [string, RegExp][] = [
      ["{", /d\.jsonl:2/],
      [line({ messages: [{ content: "no role" }, {}] }), /d\.jsonl:2 .*role/],
      [line({ messages: [messages[0], messages[0]] }), /d\.jsonl:2 has no assistant message/],
      [
        line({ messages: [messages[0], { role: "assistant", content: "sum ".repeat(300) }] }),
        /d\.jsonl:2 has \d+ tokens/,
      ],
      [
        line({
          messages: [
            messages[0],
            { role: "assistant", tool_calls: [{ function: { name: "x", arguments: "{" } }] },
          ],
        }),
        /d\.jsonl:2/,
      ],
    ];
    for (const [bad, pattern] of faults) {
      const run = () => demonstrationRows(good + bad, "d.jsonl", renderer, options);
      expect(run).toThrow(pattern);
      expect(run).toThrow(expect.objectContaining({ code: "MORTISE_TRAINER_DEMONSTRATIONS" }));
    }
    expect(() => demonstrationRows("\n", "d.jsonl", renderer, options)).toThrow(/is empty/);
  });

  test("a template that does not continue its own generation prompt is the checkpoint's fault", () => {
    const broken = rendererOf(CHAT_TEMPLATE.replace("<|im_start|>assistant", "<|im_start|>model"));
    expect(() => demonstrationRows(line({ messages }), "d.jsonl", broken, options)).toThrow(
      expect.objectContaining({ code: "MORTISE_POLICY_CHECKPOINT" }),
    );
  });
});
