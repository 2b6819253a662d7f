/** Contexts of templates that behave like published ones, taken apart into the messages they were rendered from. */
import type { Message, ToolSchema } from "@mortise/capture";
import { describe, expect, test } from "vitest";
import { tinyCheckpoint } from "../../../../packages/rendering/test/checkpoint.js";
import {
  COUNTING_TEMPLATE,
  FORGETS_THINKING_TEMPLATE,
  HERMES_TEMPLATE,
  LLAMA_TEMPLATE,
  STRICT_SYSTEM_TEMPLATE,
  XML_TEMPLATE,
} from "../../../../packages/rendering/test/templates.js";
import { ContextReader } from "../../src/report/context-messages.js";

const TOOL: ToolSchema = {
  name: "bash",
  description: "",
  parameters: { type: "object", properties: { command: { type: "string" } } },
};
const call = (id: string) => ({ id, name: "bash", arguments: '{"command": "ls"}' });
const SAID: readonly Message[] = [
  { role: "system", text: "You repair code." },
  { role: "user", text: "Repair it.\n\nIt is <b>broken</b>." },
];
const answer = (...ids: string[]): Message => ({
  role: "assistant",
  text: "Looking.",
  reasoning: "",
  toolCalls: ids.map(call),
});
const result = (id: string, text: string): Message => ({ role: "tool", text, toolCallId: id });

function read(template: string, messages: readonly Message[], from = 0) {
  const { renderer, tokenizer } = tinyCheckpoint(template);
  const rendering = renderer({ lateSystem: "to-user" });
  const text = rendering.writer.text(messages, [TOOL], true);
  const reader = new ContextReader(rendering, tokenizer);
  const tail = from === 0 ? text : rendering.writer.tail(messages.slice(from), [TOOL]);
  return reader.messages(tail).map(({ role, text: content }) => [role, content]);
}

const TEMPLATES = [
  ["calls in JSON, results inside a turn of the user", HERMES_TEMPLATE],
  ["a system message in front only", STRICT_SYSTEM_TEMPLATE],
  ["reasoning that is forgotten", FORGETS_THINKING_TEMPLATE],
  ["calls in XML, reasoning opened in the prompt", XML_TEMPLATE],
] as const;

describe("a rendered context", () => {
  test.each([...TEMPLATES, ["one bare call a turn", LLAMA_TEMPLATE]])(
    "%s: begins with what was said",
    (_, template) => {
      const found = read(template, SAID).filter(([, text]) => !text!.includes('"bash"'));
      expect(found).toEqual(SAID.map(({ role, text }) => [role, text]));
    },
  );

  test.each(TEMPLATES)("%s: two results in a row are two", (_, template) => {
    const messages = [...SAID, answer("a", "b"), result("a", "one\ntwo"), result("b", "")];
    expect(read(template, messages, 3)).toEqual([
      ["tool", "one\ntwo"],
      ["tool", ""],
    ]);
  });

  test.each([...TEMPLATES, ["one bare call a turn", LLAMA_TEMPLATE]])(
    "%s: a result and a word of the user",
    (_, template) => {
      const messages = [...SAID, answer("a"), result("a", "one"), { role: "user" as const, text: "Go on." }];
      expect(read(template, messages, 3)).toEqual([
        ["tool", "one"],
        ["user", "Go on."],
      ]);
    },
  );

  test("a whole history holds its replies too", () => {
    const messages = [...SAID, answer("a"), result("a", "one")];
    expect(read(HERMES_TEMPLATE, messages).map(([role]) => role)).toEqual([
      "system",
      "system",
      "user",
      "assistant",
      "tool",
    ]);
  });

  test("where a template numbers its messages what fits no form is unknown, and nothing is lost", () => {
    const found = read(COUNTING_TEMPLATE, SAID);
    expect(found.map(([role]) => role)).toContain("unknown");
    expect(found.map(([, text]) => text).join("")).toContain("Repair it.");
  });
});
