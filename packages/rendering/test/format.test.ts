/** Which call syntax belongs to a checkpoint, and that one which does not fit is refused. */
import { describe, expect, test } from "vitest";
import { demoChatTemplate } from "../../../packages/tasks/src/demo/chat-template.js";
import { toolFormatOf } from "../src/tools/format.js";
import { tinyCheckpoint } from "./checkpoint.js";
import { HERMES_TEMPLATE, LLAMA_TEMPLATE, XML_TEMPLATE } from "./templates.js";

function formatOf(template: string, config: object = {}) {
  const { files, tokenizer, eosIds, renderer } = tinyCheckpoint(template);
  const tokenizerConfigJson = JSON.stringify({ ...JSON.parse(files.tokenizerConfigJson), ...config });
  return toolFormatOf({ tokenizerConfigJson, tokenizer, renderer: renderer(), stopIds: eosIds })?.name;
}
const named = (name: unknown) => ({ mortise: { tool_format: name } });

describe("the syntax of a checkpoint", () => {
  test.each([
    ["positional", demoChatTemplate],
    ["hermes", HERMES_TEMPLATE],
    ["qwen-xml", XML_TEMPLATE],
    ["llama-json", LLAMA_TEMPLATE],
  ])("%s is recognised by reading back what the template writes, or named", (name, template) => {
    expect(formatOf(template)).toBe(name);
    expect(formatOf(template, named(name))).toBe(name);
  });

  test("a template that writes no calls has none", () => {
    expect(formatOf("{%- for m in messages -%}{{ m.content }}{%- endfor -%}")).toBeUndefined();
  });

  test.each([
    ["alters its arguments", "| tojson }}{{ '}", "| tojson | replace('quoted', '') }}{{ '}"],
    ["writes arguments under another name", '"arguments"', '"args"'],
    ["writes the call before its mark", "<tool_call>\\n{", "{"],
  ])("a template that %s fits no syntax", (_, from, to) => {
    const altered = HERMES_TEMPLATE.replaceAll(from, to);
    expect(altered).not.toBe(HERMES_TEMPLATE);
    expect(formatOf(altered)).toBeUndefined();
  });

  test("a named syntax that does not exist is refused with those that do", () => {
    expect(() => formatOf(HERMES_TEMPLATE, named("xml"))).toThrow(
      expect.objectContaining({ fix: expect.stringContaining("positional, hermes, qwen-xml, llama-json") }),
    );
  });

  test.each([
    ["hermes", XML_TEMPLATE],
    ["qwen-xml", HERMES_TEMPLATE],
    ["positional", HERMES_TEMPLATE],
  ])("%s is refused where it does not read back what the template writes", (name, template) => {
    expect(() => formatOf(template, named(name))).toThrow(
      expect.objectContaining({
        code: "MORTISE_POLICY_UNSUPPORTED",
        message: expect.stringContaining("does not read back"),
      }),
    );
  });
});
