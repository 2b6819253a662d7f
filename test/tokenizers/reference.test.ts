/**
 * Ids of @huggingface/tokenizers, as packages/policy uses it, equal those of the reference implementation, for
 * every published tokenizer that can be had.
 */
import { Tokenizer } from "@mortise/policy";
import { expect, test } from "vitest";
import { obtain, PUBLISHED } from "./components.js";
import { corpus, type Text } from "./corpus.js";
import { referenceIds, referencePython } from "./reference.js";

const reference = await referencePython();
if (typeof reference === "string") console.warn(reference);

/** A template of its own needs no second comparison of the same vocabulary. */
const VOCABULARIES = PUBLISHED.filter(({ name }) => name !== "qwen3-coder");

for (const published of VOCABULARIES)
  test(`${published.name} (${published.origin})`, async (context) => {
    if (typeof reference === "string") return context.skip(reference);
    const files = await obtain(published);
    if (typeof files === "string") return context.skip(files);
    const tokenizer = new Tokenizer(files);
    const special = (JSON.parse(files.tokenizerJson) as { added_tokens: { content: string }[] }).added_tokens
      .map((token) => token.content)
      .filter((token) => !token.includes("reserved_special"));
    const texts = corpus(special);
    const expected = await referenceIds(
      reference.python,
      files.tokenizerJson,
      texts.map(({ text }) => text),
    );
    const counts = new Map<string, { texts: number; tokens: number; unequal: number }>();
    const unequal: { kind: string; text: string; at: number }[] = [];
    for (const [index, { kind, text }] of texts.entries()) {
      const ids = tokenizer.encode(text);
      const row = counts.get(kind) ?? { texts: 0, tokens: 0, unequal: 0 };
      counts.set(kind, row);
      row.texts++;
      row.tokens += expected[index]!.length;
      const at = firstDifference(ids, expected[index]!);
      if (at === undefined) continue;
      row.unequal++;
      unequal.push({ kind, text: excerpt(text, tokenizer, expected[index]!, at), at });
    }
    console.log(published.name, tokenizer.vocabSize, JSON.stringify(Object.fromEntries(counts)));
    expect(unequal).toEqual([]);
  });

function firstDifference(ids: Int32Array, expected: readonly number[]): number | undefined {
  const length = Math.max(ids.length, expected.length);
  for (let at = 0; at < length; at++) if (ids[at] !== expected[at]) return at;
  return undefined;
}

function excerpt(text: Text["text"], tokenizer: Tokenizer, expected: readonly number[], at: number): string {
  const before = tokenizer.decode(expected.slice(0, at)).length;
  return JSON.stringify(text.slice(Math.max(0, before - 10), before + 30));
}
