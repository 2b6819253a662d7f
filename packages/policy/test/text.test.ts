import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ChatTemplate, DetokenizeStream, Tokenizer, tokenizerFiles, trainTokenizer } from "../src/index.js";
import { toByteCharacters } from "../src/text/byte-alphabet.js";
import { withReferenceDigits } from "../src/text/reference-digits.js";

const SPECIAL = ["<|im_start|>", "<|im_end|>", "<tool_call>"];
const CORPUS = [
  "<|im_start|>user\n# sum of xs\n(xs){let s=0;for(const x of xs)s-=x;return s}<|im_end|>\n",
  "<|im_start|>assistant\n<tool_call>edit s-=x => s+=x<|im_end|>\n",
  "<|im_start|>user\n# count of xs above lim\nreturn count<|im_end|>\n",
].flatMap((text) => [text, text]);
const trained = trainTokenizer(CORPUS, { maxMerges: 40, specialTokens: SPECIAL });
const template =
  "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{% if tools %}{{ tools | length }} tools{% endif %}{% if add_generation_prompt %}>{% endif %}{% if messages | length > 3 %}{{ raise_exception('too long') }}{% endif %}";
const files = tokenizerFiles(trained, {
  eosToken: "<|im_end|>",
  padToken: "<|im_end|>",
  chatTemplate: template,
  maxLength: 64,
});
const tokenizer = new Tokenizer(files);

/** Byte-pair encoding from the merges in the file, as its definition says: the earliest merge first, everywhere. */
function encodeByDefinition(text: string): number[] {
  const { model, added_tokens } = JSON.parse(trained.tokenizerJson) as {
    model: { vocab: Record<string, number>; merges: [string, string][] };
    added_tokens: { id: number; content: string }[];
  };
  const ids: number[] = [];
  for (const part of text.split(/(<\|im_start\|>|<\|im_end\|>|<tool_call>)/u)) {
    const special = added_tokens.find(({ content }) => content === part);
    if (special !== undefined) ids.push(special.id);
    else
      for (const [word] of part.matchAll(/ =>\s?|[A-Za-z]+ ?|[\s\S]/gu)) {
        let symbols = toByteCharacters(word);
        for (const [left, right] of model.merges) {
          for (let i = 0; i + 1 < symbols.length; i++) {
            if (symbols[i] === left && symbols[i + 1] === right)
              symbols = [...symbols.slice(0, i), left + right, ...symbols.slice(i + 2)];
          }
        }
        ids.push(...symbols.map((symbol) => model.vocab[symbol]!));
      }
  }
  return ids;
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(fc.constantFrom("sum ", "count", " => ", "xs", "\n", "é", "漢", "😀", "return s", ...SPECIAL))
    .map((parts) => parts.join("")),
);

describe("a trained tokenizer", () => {
  test("has bytes, merges and special tokens, and shortens what it was trained on", () => {
    const { model } = JSON.parse(trained.tokenizerJson) as { model: { merges: unknown[] } };
    expect(model.merges).toHaveLength(40);
    expect(tokenizer.vocabSize).toBe(trained.vocabSize);
    expect([...tokenizer.specialIds]).toEqual(SPECIAL.map((token) => tokenizer.idOf(token)));
    expect(tokenizer.encode("return s").length).toBeLessThan(8);
  });

  test("gives the ids of the definition through the library", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const wellFormed = text.toWellFormed();
        expect([...tokenizer.encode(wellFormed)]).toEqual(encodeByDefinition(wellFormed));
      }),
    );
  });

  test("gives back every text", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(tokenizer.decode(tokenizer.encode(text.toWellFormed()))).toBe(text.toWellFormed());
      }),
    );
  });

  test("encodes the parts between special tokens independently (C2)", () => {
    fc.assert(
      fc.property(anyText, anyText, (left, right) => {
        const [a, b] = [`${left.toWellFormed()}<|im_end|>`, right.toWellFormed()];
        expect([...tokenizer.encode(a + b)]).toEqual([...tokenizer.encode(a), ...tokenizer.encode(b)]);
      }),
    );
  });

  test("is the same for the same texts", () => {
    expect(trainTokenizer(CORPUS, { maxMerges: 40, specialTokens: SPECIAL })).toEqual(trained);
  });

  test("stops when no pair occurs twice", () => {
    expect(trainTokenizer(["abc"], { maxMerges: 9, specialTokens: [] }).vocabSize).toBe(256);
  });
});

describe("streamed text", () => {
  test("never splits a character, and adds up to the whole", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const wellFormed = text.toWellFormed();
        const stream = new DetokenizeStream(tokenizer);
        const parts = [...tokenizer.encode(wellFormed)].map((id) => stream.push(id));
        for (const part of parts)
          expect(part.isWellFormed() && !part.includes("\ufffd")).toBe(
            !wellFormed.includes("\ufffd") || !part.includes("\ufffd"),
          );
        expect(parts.join("") + stream.flush()).toBe(wellFormed);
      }),
    );
  });

  test("equals decoding for any ids a policy may sample", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(trained.vocabSize - 1)), (ids) => {
        const stream = new DetokenizeStream(tokenizer);
        expect(ids.map((id) => stream.push(id)).join("") + stream.flush()).toBe(tokenizer.decode(ids));
      }),
    );
  });

  test("ends an incomplete character with U+FFFD", () => {
    const [first] = tokenizer.encode("漢");
    const stream = new DetokenizeStream(tokenizer);
    expect([stream.push(first!), stream.flush()]).toEqual(["", "\ufffd"]);
  });
});

describe("a vocabulary that is not byte-level", () => {
  const wordy = new Tokenizer({
    tokenizerJson: JSON.stringify({
      version: "1.0",
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: "Metaspace", replacement: "▁", prepend_scheme: "never" },
      post_processor: null,
      decoder: { type: "Metaspace", replacement: "▁", prepend_scheme: "never" },
      model: { type: "BPE", unk_token: null, vocab: { "▁": 0, a: 1, b: 2, ab: 3 }, merges: [["a", "b"]] },
    }),
    tokenizerConfigJson: "{}",
  });

  test("streams to the same text as decoding", () => {
    const ids = [...wordy.encode("ab a b")];
    expect(ids).toEqual([3, 0, 1, 0, 2]);
    const stream = new DetokenizeStream(wordy);
    expect(ids.map((id) => stream.push(id)).join("") + stream.flush()).toBe(wordy.decode(ids));
  });
});

describe("a chat template", () => {
  const chat = new ChatTemplate(files);

  test("renders messages, tools and the generation prompt", () => {
    const messages = [{ role: "user", content: "hi" }];
    expect(chat.renderMessages(messages, undefined, { addGenerationPrompt: true })).toBe("[user] hi>");
    expect(chat.renderMessages(messages, [{ type: "function" }], { addGenerationPrompt: false })).toBe(
      "[user] hi1 tools",
    );
  });

  test("passes its own complaint on", () => {
    const messages = Array.from({ length: 4 }, () => ({ role: "user", content: "x" }));
    expect(() => chat.renderMessages(messages, undefined, { addGenerationPrompt: false })).toThrow(
      expect.objectContaining({
        code: "MORTISE_PROVIDER_BAD_REQUEST",
        message: expect.stringContaining("too long"),
      }),
    );
  });

  test("uses the named template for tools when there is one", () => {
    const named = new ChatTemplate({
      ...files,
      tokenizerConfigJson: JSON.stringify({
        chat_template: [
          { name: "default", template: "plain" },
          { name: "tool_use", template: "tools" },
        ],
      }),
    });
    expect(named.renderMessages([], [{ type: "function" }], { addGenerationPrompt: false })).toBe("tools");
    expect(named.renderMessages([], [], { addGenerationPrompt: false })).toBe("plain");
  });
});

test("every numeric character is a digit, as the reference has it, also inside a sequence", () => {
  const digits = (isIndividual: boolean) => ({ type: "Digits", individual_digits: isIndividual });
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: true };
  const split = (Regex: string) => ({
    type: "Split",
    pattern: { Regex },
    behavior: "Isolated",
    invert: false,
  });
  expect(
    withReferenceDigits({
      model: 1,
      pre_tokenizer: { type: "Sequence", pretokenizers: [digits(true), byteLevel] },
    }),
  ).toEqual({ model: 1, pre_tokenizer: { type: "Sequence", pretokenizers: [split("\\p{N}"), byteLevel] } });
  expect(withReferenceDigits({ pre_tokenizer: digits(false) })).toEqual({ pre_tokenizer: split("\\p{N}+") });
  expect(withReferenceDigits({ pre_tokenizer: null })).toEqual({ pre_tokenizer: null });
});
