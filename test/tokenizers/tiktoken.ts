/**
 * Owns turning a vocabulary published as ranks (tiktoken) into tokenizer.json. A token's merge is the last step by
 * which lower ranks build it. Pattern and special tokens come with the ranks; the file's form is written here.
 */
import type { TokenizerFiles } from "@mortise/policy";
import { BYTE_CHARACTERS } from "../../packages/policy/src/text/byte-alphabet.js";

export interface Ranks {
  /** Lines of `base64 rank`. */
  readonly ranks: string;
  /** Regular expression of the pre-tokens. */
  readonly pattern: string;
  /** In the order of their ids, which follow each other from `firstSpecial`. */
  readonly specialTokens: readonly string[];
  readonly firstSpecial: number;
  readonly eosToken: string;
}

export function tokenizerFromRanks(published: Ranks): TokenizerFiles {
  const ranks = new Map<string, number>();
  for (const line of published.ranks.split("\n")) {
    const [token, rank] = line.split(" ");
    if (token) ranks.set(Buffer.from(token, "base64").toString("latin1"), Number(rank));
  }
  const spell = (bytes: string) => Array.from(bytes, (byte) => BYTE_CHARACTERS[byte.charCodeAt(0)]).join("");
  const ordered = [...ranks].sort(([, a], [, b]) => a - b);
  const merges = ordered
    .filter(([token]) => token.length > 1)
    .map(([token, rank]) => partsBelow(token, rank, ranks))
    // A few entries are no merge of two others: pieces that are matched whole or not at all.
    .filter((parts) => parts.length === 2)
    .map((parts) => parts.map(spell));
  const json = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: published.specialTokens.map((content, at) => ({
      id: published.firstSpecial + at,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: content.startsWith("<|"),
    })),
    normalizer: { type: "NFC" },
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: published.pattern }, behavior: "Isolated", invert: false },
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
      vocab: Object.fromEntries(ordered.map(([token, rank]) => [spell(token), rank])),
      merges,
    },
  };
  const config = { eos_token: published.eosToken };
  return { tokenizerJson: JSON.stringify(json), tokenizerConfigJson: JSON.stringify(config) };
}

/** What merging with ranks below `limit` makes of a token's bytes. */
function partsBelow(token: string, limit: number, ranks: ReadonlyMap<string, number>): string[] {
  const parts = [...token];
  for (;;) {
    let best = -1;
    let lowest = limit;
    for (let at = 0; at + 1 < parts.length; at++) {
      const rank = ranks.get(parts[at]! + parts[at + 1]!);
      if (rank !== undefined && rank < lowest) {
        best = at;
        lowest = rank;
      }
    }
    if (best < 0) return parts;
    parts.splice(best, 2, parts[best]! + parts[best + 1]!);
  }
}
