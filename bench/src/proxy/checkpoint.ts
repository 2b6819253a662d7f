/**
 * Owns the checkpoint of the proxy benchmarks: a byte-level tokenizer learnt from this repository's sources, a
 * chat template of the common kind with JSON calls, and weights nobody computes with. Texts to talk about are cut
 * from the same sources, by tokens.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  type DecoderConfig,
  initialiseWeights,
  openCheckpoint,
  type Tokenizer,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** Context and reply: room for the longest measured conversation. */
export const MAX_POSITIONS = 262_144;
const SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"];
/** Words with the space before them, numbers by digit, punctuation, and white space: as published vocabularies cut. */
const PATTERN = " ?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+";
/** Frequent words that are one token each; with it a token is about as long as in published vocabularies. */
const WORDS = 6_000;

const TEMPLATE = [
  "{%- if tools -%}{{ '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' -%}{{ messages[0].content + '\\n' }}{%- endif -%}",
  "{%- for tool in tools -%}{{ tool | tojson + '\\n' }}{%- endfor -%}{{ '<|im_end|>\\n' }}",
  "{%- elif messages[0].role == 'system' -%}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif -%}",
  "{%- for m in messages -%}",
  "{%- if m.role == 'tool' -%}",
  "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}",
  "{{ '\\n<tool_response>\\n' + m.content + '\\n</tool_response>' }}",
  "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- elif m.role != 'system' or not loop.first -%}{{ '<|im_start|>' + m.role + '\\n' + m.content }}",
  "{%- for c in m.tool_calls or [] -%}{{ '<tool_call>\\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}\\n</tool_call>' }}{%- endfor -%}",
  "{{ '<|im_end|>\\n' }}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}",
].join("");

/** Writes the checkpoint into `directory` and returns its path. */
export async function writeBenchCheckpoint(directory: string): Promise<string> {
  const trained = wordTokenizer();
  const files = tokenizerFiles(trained, {
    eosToken: "<|im_end|>",
    padToken: "<|endoftext|>",
    chatTemplate: TEMPLATE,
    maxLength: MAX_POSITIONS,
  });
  const config: DecoderConfig = {
    modelType: "qwen3",
    vocabSize: trained.vocabSize,
    hiddenSize: 16,
    intermediateSize: 32,
    layers: 1,
    heads: 2,
    kvHeads: 1,
    headDim: 8,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 8,
    maxPositions: MAX_POSITIONS,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
  };
  const path = join(directory, "policy");
  await writeCheckpoint(path, { config, weights: initialiseWeights(config, 1), tokenizerFiles: files });
  return path;
}

interface TokenizerJson {
  added_tokens: { id: number; content: string }[];
  model: { vocab: Record<string, number>; merges: (readonly [left: string, right: string])[] };
}

/**
 * A byte-level tokenizer whose merges spell the frequent words of the sources from left to right: learning merges
 * of a whole vocabulary takes minutes, and the benchmarks need only their number and length.
 */
function wordTokenizer(): { tokenizerJson: string; vocabSize: number } {
  const bytes = trainTokenizer([], { maxMerges: 0, specialTokens: SPECIAL_TOKENS, pattern: PATTERN });
  const json = JSON.parse(bytes.tokenizerJson) as TokenizerJson;
  const { vocab } = json.model;
  const merges = new Map<string, readonly [string, string]>();
  for (const word of frequentWords())
    for (let end = 2; end <= word.length; end++)
      merges.set(word.slice(0, end), [word.slice(0, end - 1), word.slice(end - 1, end)]);
  json.model.merges = [...merges.values()];
  let next = Object.keys(vocab).length;
  for (const entry of merges.keys()) if (!Object.hasOwn(vocab, entry)) vocab[entry] = next++;
  json.added_tokens = json.added_tokens.map((token) => ({ ...token, id: next++ }));
  return { tokenizerJson: JSON.stringify(json), vocabSize: next };
}

/** In the alphabet of byte-level vocabularies, where a space is another letter. */
function frequentWords(): string[] {
  const counts = new Map<string, number>();
  for (const [word] of sources().matchAll(/ ?[A-Za-z]{2,}/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const byCount = [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return byCount.slice(0, WORDS).map(([word]) => word.replace(" ", "\u0120"));
}

/** Text of about as many tokens as asked, never twice the same. */
export class Prose {
  private readonly text = sources();
  private readonly charactersPerToken: number;
  private at = 0;

  constructor(tokenizer: Tokenizer) {
    const probe = this.text.slice(0, 200_000);
    this.charactersPerToken = probe.length / tokenizer.encode(probe).length;
  }

  static async open(checkpoint: string): Promise<Prose> {
    return new Prose((await openCheckpoint(checkpoint)).tokenizer);
  }

  tokens(count: number): string {
    const length = Math.round(count * this.charactersPerToken);
    let text = "";
    while (text.length < length) {
      if (this.at >= this.text.length) this.at = 0;
      const piece = this.text.slice(this.at, this.at + length - text.length);
      this.at += piece.length;
      text += piece;
    }
    return text;
  }
}

let cached: string | undefined;

function sources(): string {
  cached ??= ["packages", "services"]
    .flatMap((parent) => readdirSync(join(ROOT, parent)).map((name) => join(ROOT, parent, name, "src")))
    .flatMap((directory) => typescriptBelow(directory))
    .map((path) => readFileSync(path, "utf8"))
    .join("\n");
  return cached;
}

function typescriptBelow(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && !name.includes("gen/"))
      .map((name) => join(directory, name));
  } catch {
    return []; // a package without sources
  }
}
