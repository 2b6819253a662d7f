import { Tokenizer as Library } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Tokenizer, tokenizerFiles, trainTokenizer } from "../src/index.js";
import { ByteLevelEncoder } from "../src/text/byte-level-encoder.js";

const SPECIAL = ["<|im_start|>", "<|im_end|>", "<|im_end|>s", "<tool_call>"];
const CORPUS = Array<string>(3).fill(
  "<|im_start|>the sum of xs, café don't it's 12345  \n\n  x = x + 1;<|im_end|>",
);
const GPT4 =
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

type Json = Record<string, unknown>;

const files = tokenizerFiles(trainTokenizer(CORPUS, { maxMerges: 60, specialTokens: SPECIAL }), {
  eosToken: "<|im_end|>",
  padToken: "<|im_end|>",
  chatTemplate: "",
  maxLength: 64,
});
const trained = JSON.parse(files.tokenizerJson) as Json;
const config = JSON.parse(files.tokenizerConfigJson) as Json;
const bytes = (useRegex: boolean) => ({ type: "ByteLevel", add_prefix_space: false, use_regex: useRegex });
const split = (Regex: string, behavior = "Isolated", invert = false) => ({
  type: "Split",
  pattern: { Regex },
  behavior,
  invert,
});
const sequence = (...pretokenizers: object[]) => ({ type: "Sequence", pretokenizers });

/** The ways in which published byte-level vocabularies cut texts, and ways in which a cut leaves something out. */
const KINDS: Readonly<Record<string, Json>> = {
  "as trained": trained,
  "one pattern, composed first": {
    ...trained,
    normalizer: { type: "NFC" },
    pre_tokenizer: sequence(split(GPT4), bytes(false)),
  },
  "the library's pattern": { ...trained, pre_tokenizer: bytes(true) },
  "digits, then the library's pattern": {
    ...trained,
    pre_tokenizer: sequence(split("\\p{N}"), bytes(true)),
  },
  "gaps are words": { ...trained, pre_tokenizer: sequence(split("\\p{L}+"), bytes(false)) },
  "matches are removed": { ...trained, pre_tokenizer: sequence(split("\\s+", "Removed"), bytes(false)) },
  "gaps are removed": { ...trained, pre_tokenizer: sequence(split("\\S+", "Isolated", true), bytes(false)) },
  "merges ignored for whole words": {
    ...trained,
    model: { ...(trained.model as Json), ignore_merges: true },
  },
};

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(
      fc.constantFrom(
        ...[
          "sum ",
          "café",
          "cafe\u0301",
          " don't",
          "IT'S",
          "12345",
          "½²",
          "\n",
          "\r\n",
          "  ",
          "\t",
          "漢字",
          "😀",
        ],
        ...["\ud83d", "<|im_", "end|>", "s", ...SPECIAL],
        "a-rather-long-word-without-any-break-which-is-cut-from-a-longer-text-and-longer-than-is-remembered",
      ),
    )
    .map((parts) => parts.join("")),
);

describe("the short way to ids", () => {
  for (const [kind, json] of Object.entries(KINDS))
    test(`gives the library's: ${kind}`, () => {
      const library = new Library(json, config);
      const encoder = ByteLevelEncoder.of(library, json, config)!;
      fc.assert(
        fc.property(anyText, (text) => {
          const expected = Int32Array.from(library.encode(text, { add_special_tokens: false }).ids);
          expect(encoder.encode(text, Number.POSITIVE_INFINITY)).toEqual(expected);
          expect(encoder.encode(text, expected.length)).toEqual(expected);
          if (expected.length > 0)
            expect(encoder.encode(text, expected.length - 1)).toHaveProperty("estimate");
        }),
      );
    });

  test("gives the same after more words than are remembered", () => {
    const tokenizer = new Tokenizer(files);
    const text = "don't the sum ".repeat(9);
    const before = tokenizer.encode(text);
    for (let n = 0; n < 40; n++)
      tokenizer.encode(Array.from({ length: 2_000 }, (_, at) => `${n}w${at} `).join(""));
    expect(tokenizer.encode(text)).toEqual(before);
  });

  test("merges long words as the definition says", () => {
    const library = new Library(trained, config);
    const encoder = ByteLevelEncoder.of(library, trained, config)!;
    const letters = fc.string({ unit: fc.constantFrom(..."thesumofxcaé"), minLength: 513, maxLength: 3_000 });
    fc.assert(
      fc.property(letters, (word) => {
        const expected = library.encode(word, { add_special_tokens: false }).ids as number[];
        expect([...(encoder.encode(word, Number.POSITIVE_INFINITY) as Int32Array)]).toEqual(expected);
      }),
    );
  });

  test("gives up a word that cannot fit before it is merged", () => {
    const tokenizer = new Tokenizer(files);
    const longest = Math.max(
      ...Object.keys((trained.model as { vocab: object }).vocab).map((entry) => entry.length),
    );
    const word = "a".repeat(30_000_000);
    expect(tokenizer.encodeWithin(word, 10_000)).toEqual({ estimate: 30_000_000 / longest });
  });

  const others: Readonly<Record<string, Json>> = {
    "another pre-tokenizer": { ...trained, pre_tokenizer: { type: "Metaspace" } },
    "a space put in front": { ...trained, pre_tokenizer: { ...bytes(true), add_prefix_space: true } },
    "another normalizer": { ...trained, normalizer: { type: "Lowercase" } },
    "an added token that takes space with it": {
      ...trained,
      added_tokens: [{ id: 0, content: "<s>", lstrip: true }],
    },
  };
  for (const [kind, json] of Object.entries(others))
    test(`does not exist for ${kind}`, () => {
      expect(ByteLevelEncoder.of(new Library(json, config), json, config)).toBeUndefined();
    });
});
