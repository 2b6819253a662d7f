/**
 * Owns training a small byte-level BPE tokenizer from texts: 256 bytes, then merges inside pre-tokens, then
 * special tokens. Writes the standard tokenizer.json. For demonstrations and tests, not for real corpora: pair
 * counts are recomputed for every merge.
 */
import { BYTE_CHARACTERS, toByteCharacters } from "./byte-alphabet.js";
import type { TokenizerFiles } from "./tokenizer.js";

export interface TokenizerTraining {
  /** At most this many merges; fewer when no pair occurs twice. */
  readonly maxMerges: number;
  /** Single tokens that merges never cross, in the order of their ids. */
  readonly specialTokens: readonly string[];
  /** Regular expression (no flags) whose matches are the pre-tokens; it must match every text completely. */
  readonly pattern?: string;
}

/** Words with the space after them, arrows with theirs, and any other character alone. */
const DEFAULT_PATTERN = " =>\\s?|[A-Za-z]+ ?|[\\s\\S]";

interface Word {
  symbols: string[];
  readonly count: number;
}

type Merge = readonly [left: string, right: string];

function escapeRegex(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function countWords(texts: Iterable<string>, specialTokens: readonly string[], pattern: string): Word[] {
  const counts = new Map<string, number>();
  const cut = specialTokens.length === 0 ? /$^/ : new RegExp(specialTokens.map(escapeRegex).join("|"), "u");
  for (const text of texts) {
    for (const part of text.split(cut)) {
      for (const [word] of part.matchAll(new RegExp(pattern, "gu")))
        counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return [...counts].map(([word, count]) => ({ symbols: toByteCharacters(word), count }));
}

/** The most frequent neighbouring pair; ties go to the smaller pair in code point order, so training is deterministic. */
function mostFrequentPair(words: readonly Word[]): Merge | undefined {
  const counts = new Map<string, number>();
  for (const { symbols, count } of words) {
    for (let i = 0; i + 1 < symbols.length; i++) {
      const key = `${symbols[i]} ${symbols[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
  }
  let best: string | undefined;
  let highest = 1;
  for (const [key, count] of counts) {
    if (count > highest || (count === highest && best !== undefined && key < best)) {
      best = key;
      highest = count;
    }
  }
  return best?.split(" ") as Merge | undefined;
}

function applyMerge(symbols: readonly string[], [left, right]: Merge): string[] {
  const out: string[] = [];
  for (let i = 0; i < symbols.length; i++) {
    if (symbols[i] === left && symbols[i + 1] === right) {
      out.push(left + right);
      i++;
    } else out.push(symbols[i]!);
  }
  return out;
}

function learnMerges(words: Word[], maxMerges: number): Merge[] {
  const merges: Merge[] = [];
  while (merges.length < maxMerges) {
    const merge = mostFrequentPair(words);
    if (merge === undefined) break;
    merges.push(merge);
    for (const word of words) word.symbols = applyMerge(word.symbols, merge);
  }
  return merges;
}

/** Two merges can spell the same entry; it is one vocabulary row. */
function buildVocabulary(merges: readonly Merge[]): Record<string, number> {
  const entries = new Set([...BYTE_CHARACTERS, ...merges.map(([left, right]) => left + right)]);
  return Object.fromEntries([...entries].map((entry, id) => [entry, id]));
}

function tokenizerJson(merges: readonly Merge[], specialTokens: readonly string[], pattern: string): object {
  const vocab = buildVocabulary(merges);
  const firstSpecial = Object.keys(vocab).length;
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content, i) => ({
      id: firstSpecial + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
      ],
    },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges,
    },
  };
}

export interface TrainedTokenizer {
  readonly tokenizerJson: string;
  readonly vocabSize: number;
}

/** Ids: bytes 0–255, merges from 256 in the order learnt, then the special tokens. */
export function trainTokenizer(texts: Iterable<string>, options: TokenizerTraining): TrainedTokenizer {
  const pattern = options.pattern ?? DEFAULT_PATTERN;
  const merges = learnMerges(countWords(texts, options.specialTokens, pattern), options.maxMerges);
  const json = tokenizerJson(merges, options.specialTokens, pattern);
  return {
    tokenizerJson: JSON.stringify(json),
    vocabSize: Object.keys(buildVocabulary(merges)).length + options.specialTokens.length,
  };
}

export interface TokenizerRoles {
  readonly eosToken: string;
  readonly padToken: string;
  /** Jinja source. */
  readonly chatTemplate: string;
  readonly maxLength: number;
}

/** Joins a trained tokenizer with its chat template into the files of a checkpoint. */
export function tokenizerFiles(trained: TrainedTokenizer, roles: TokenizerRoles): TokenizerFiles {
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: roles.eosToken,
    pad_token: roles.padToken,
    model_max_length: roles.maxLength,
    clean_up_tokenization_spaces: false,
    chat_template: roles.chatTemplate,
  };
  return {
    tokenizerJson: trained.tokenizerJson,
    tokenizerConfigJson: `${JSON.stringify(config, null, 2)}\n`,
  };
}
