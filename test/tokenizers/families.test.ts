/**
 * Published chat templates, verified as `mortise templates verify` does: turn by turn against the rendering of the
 * whole conversation, replies read back over their ids.
 */
import { ChatTemplate, Tokenizer } from "@mortise/policy";
import { type RenderingPolicy, verifyTemplate } from "@mortise/rendering";
import { describe, expect, test } from "vitest";
import { obtain, PUBLISHED } from "./components.js";

const END_TOKENS = ["<|im_end|>", "<|eot_id|>", "<|eom_id|>"];

/** Family, call syntax, and what the whole rendering makes of the conversations under the policy `keep`. */
const EXPECTED: Readonly<
  Record<string, { family: string; calls: string | undefined; isAppendOnly: boolean }>
> = {
  "qwen2.5": { family: "qwen2.5", calls: "hermes", isAppendOnly: true },
  qwen3: { family: "qwen3", calls: "hermes", isAppendOnly: false },
  "qwen3-coder": { family: "qwen3-coder", calls: "qwen-xml", isAppendOnly: true },
  "qwen3.5": { family: "qwen3.5", calls: "qwen-xml", isAppendOnly: false },
  "llama3.1": { family: "llama3", calls: "llama-json", isAppendOnly: true },
  "llama3.2": { family: "llama3", calls: "llama-json", isAppendOnly: true },
  smollm2: { family: "smollm2", calls: undefined, isAppendOnly: true },
  smollm3: { family: "smollm3", calls: undefined, isAppendOnly: true },
};

const POLICIES: readonly RenderingPolicy[] = [
  {},
  { history: "branch" },
  { history: "strip" },
  { lateSystem: "merge-up" },
];

for (const published of PUBLISHED)
  describe(`${published.name} (${published.origin})`, async () => {
    const files = await obtain(published);
    if (typeof files === "string") console.warn(files);
    const tokenizer = typeof files === "string" ? undefined : new Tokenizer(files);

    const verify = (policy: RenderingPolicy) => {
      if (typeof files === "string" || !tokenizer) throw new Error("absent");
      const ids = END_TOKENS.map((token) => tokenizer.idOf(token)).filter((id) => id !== undefined);
      return verifyTemplate({
        tokenizer,
        chatTemplate: new ChatTemplate(files),
        eosIds: new Set(ids),
        tokenizerConfigJson: files.tokenizerConfigJson,
        modelType: undefined,
        policy,
        variables: { date_string: "26 Jul 2024" },
      });
    };

    test.skipIf(typeof files === "string").each(POLICIES)("%j", (policy) => {
      const expected = EXPECTED[published.name]!;
      const found = verify(policy);
      const outcomes = Map.groupBy(found.cases, (one) => one.outcome);
      const counts = Object.fromEntries([...outcomes].map(([outcome, cases]) => [outcome, cases.length]));
      console.log(
        published.name,
        JSON.stringify(policy),
        JSON.stringify(counts),
        found.deviations.join("; "),
      );
      expect(found).toMatchObject({ family: expected.family, isSound: true, deviations: [] });
      expect(found.calls).toBe(expected.calls);
      expect(found.traits).toMatchObject({ isTailStable: true, isAppendOnly: expected.isAppendOnly });
      const isAnew = policy.history === "branch" || policy.history === "strip";
      if (expected.isAppendOnly || isAnew) expect(Object.keys(counts)).toEqual(["equal"]);
      else expect(counts.rewritten).toBeGreaterThan(0);
    });

    const hasSwitch = ["qwen3", "qwen3.5", "smollm3"].includes(published.name);
    test.skipIf(typeof files === "string" || !hasSwitch).each(["on", "off"] as const)(
      "thinking %s",
      (thinking) => {
        const found = verify({ thinking });
        expect(found.traits.closesReasoning).toBe(thinking === "off" && found.traits.reasoning !== undefined);
        expect(found.isSound).toBe(true);
      },
    );
  });
