/** The verification of a template: what is sound passes, what only some conversations reveal is found. */
import { expect, test } from "vitest";
import { verifyTemplate } from "../src/families/verify.js";
import type { RenderingPolicy } from "../src/render/renderer.js";
import { tinyCheckpoint } from "./checkpoint.js";
import { FORGETS_THINKING_TEMPLATE, HERMES_TEMPLATE, LLAMA_TEMPLATE } from "./templates.js";

function verify(template: string, policy: RenderingPolicy = {}) {
  const { tokenizer, eosIds, template: chatTemplate, files } = tinyCheckpoint(template);
  const { tokenizerConfigJson } = files;
  return verifyTemplate({
    tokenizer,
    chatTemplate,
    eosIds,
    tokenizerConfigJson,
    modelType: undefined,
    policy,
    generated: 5,
  });
}
const outcomes = (found: ReturnType<typeof verify>) => [...new Set(found.cases.map((one) => one.outcome))];

test("an append-only template is equal everywhere, of its family without deviation", () => {
  const found = verify(HERMES_TEMPLATE);
  expect(outcomes(found)).toEqual(["equal"]);
  expect(found).toMatchObject({ family: "qwen2.5", calls: "hermes", isSound: true, deviations: [] });
  expect(found.cases.map((one) => one.name)).toContain("parallel calls");
});

test("a template that forgets thinking is rewritten where it forgets, and equal when rendered anew", () => {
  const kept = verify(FORGETS_THINKING_TEMPLATE);
  expect(kept.isSound).toBe(true);
  const of = (name: string) => kept.cases.find((one) => one.name === name);
  expect(of("reasoning")).toMatchObject({ outcome: "rewritten", detail: "replies 0, 1" });
  expect(of("one task, with reasoning")).toMatchObject({ outcome: "equal" });
  expect(outcomes(verify(FORGETS_THINKING_TEMPLATE, { history: "strip" }))).toEqual(["equal"]);
});

test("parallel calls are left out where a reply takes one", () => {
  const found = verify(LLAMA_TEMPLATE);
  expect(found).toMatchObject({ calls: "llama-json", isSound: true });
  expect(found.cases.map((one) => one.name)).not.toContain("parallel calls");
});

test("a tail that depends on the reply is unequal, with the text that is not where it should be", () => {
  const altered = HERMES_TEMPLATE.replace(
    "{{ '<|im_end|>\\n' }}{%- endif -%}{%- endfor -%}",
    "{{ '<|im_end|>\\n' }}{%- if m.content == 'Done.' -%}{{ 'ended\\n' }}{%- endif -%}{%- endif -%}{%- endfor -%}",
  );
  expect(altered).not.toBe(HERMES_TEMPLATE);
  const found = verify(altered);
  expect(found.isSound).toBe(false);
  expect(found.cases.find((one) => one.name === "one reply")).toMatchObject({
    outcome: "unequal",
    detail: expect.stringContaining("Thanks."),
  });
});
