/**
 * Owns reading a byte-level BPE tokenizer out of a GGUF file's metadata, as tokenizer.json and
 * tokenizer_config.json. The vocabulary, merges, special tokens and chat template are the published ones; the
 * pre-tokenizer, which GGUF only names, is written here. Reads no tensors.
 */
import { readFile } from "node:fs/promises";
import type { TokenizerFiles } from "@mortise/policy";

type Value = number | bigint | boolean | string | Value[];

const CONTROL = 3;
const USER_DEFINED = 4;

/** By `tokenizer.ggml.pre`. */
const PRE_TOKENIZERS: Readonly<Record<string, object>> = {
  smollm: {
    type: "Sequence",
    pretokenizers: [
      { type: "Digits", individual_digits: true },
      { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    ],
  },
};

/** @throws Error for a file that is no GGUF or names a pre-tokenizer unknown here */
export async function tokenizerFromGguf(path: string): Promise<TokenizerFiles> {
  const metadata = new MetadataReader(await readFile(path)).read();
  const list = (key: string) => metadata.get(`tokenizer.ggml.${key}`) as Value[];
  const pre = String(metadata.get("tokenizer.ggml.pre"));
  const preTokenizer = PRE_TOKENIZERS[pre];
  if (!preTokenizer) throw new Error(`${path}: pre-tokenizer ${pre} is unknown here`);
  const tokens = list("tokens") as string[];
  const types = list("token_type").map(Number);
  const added = tokens.flatMap((content, id) =>
    types[id] === CONTROL || types[id] === USER_DEFINED
      ? [addedToken(id, content, types[id] === CONTROL)]
      : [],
  );
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  const json = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: preTokenizer,
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
      merges: (list("merges") as string[]).map((merge) => merge.split(" ")),
    },
  };
  const eos = tokens[Number(metadata.get("tokenizer.ggml.eos_token_id"))];
  const template = metadata.get("tokenizer.chat_template");
  const config = { eos_token: eos, ...(template !== undefined && { chat_template: template }) };
  return { tokenizerJson: JSON.stringify(json), tokenizerConfigJson: JSON.stringify(config) };
}

function addedToken(id: number, content: string, special: boolean) {
  return { id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special };
}

class MetadataReader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  read(): Map<string, Value> {
    if (this.bytes.toString("latin1", 0, 4) !== "GGUF") throw new Error("no GGUF file");
    this.at = 16;
    const count = Number(this.take(8, (at) => this.bytes.readBigUInt64LE(at)));
    const metadata = new Map<string, Value>();
    for (let entry = 0; entry < count; entry++) {
      const key = this.text();
      metadata.set(key, this.value(this.type()));
    }
    return metadata;
  }

  private take<T>(size: number, read: (at: number) => T): T {
    const value = read(this.at);
    this.at += size;
    return value;
  }

  private type(): number {
    return this.take(4, (at) => this.bytes.readUInt32LE(at));
  }

  private text(): string {
    const length = Number(this.take(8, (at) => this.bytes.readBigUInt64LE(at)));
    return this.take(length, (at) => this.bytes.toString("utf8", at, at + length));
  }

  private value(type: number): Value {
    const { bytes } = this;
    switch (type) {
      case 0:
        return this.take(1, (at) => bytes.readUInt8(at));
      case 1:
        return this.take(1, (at) => bytes.readInt8(at));
      case 2:
        return this.take(2, (at) => bytes.readUInt16LE(at));
      case 3:
        return this.take(2, (at) => bytes.readInt16LE(at));
      case 4:
        return this.take(4, (at) => bytes.readUInt32LE(at));
      case 5:
        return this.take(4, (at) => bytes.readInt32LE(at));
      case 6:
        return this.take(4, (at) => bytes.readFloatLE(at));
      case 7:
        return this.take(1, (at) => bytes.readUInt8(at) !== 0);
      case 8:
        return this.text();
      case 9: {
        const inner = this.type();
        const length = Number(this.take(8, (at) => bytes.readBigUInt64LE(at)));
        return Array.from({ length }, () => this.value(inner));
      }
      case 10:
        return this.take(8, (at) => bytes.readBigUInt64LE(at));
      case 11:
        return this.take(8, (at) => bytes.readBigInt64LE(at));
      case 12:
        return this.take(8, (at) => bytes.readDoubleLE(at));
      default:
        throw new Error(`metadata of type ${type}`);
    }
  }
}
