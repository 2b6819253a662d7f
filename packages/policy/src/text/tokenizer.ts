/**
 * Owns text <-> ids for one checkpoint, on top of @huggingface/tokenizers. Decoding of byte-level vocabularies is
 * done here on bytes, so that a stream of ids and the whole list always give the same text.
 * Does not add begin or end tokens: the chat template writes them.
 */
import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { MortiseError } from "@mortise/contracts";
import { bytesOfEntry } from "./byte-alphabet.js";
import { ByteLevelEncoder, type TooManyTokens } from "./byte-level-encoder.js";
import { withReferenceDigits } from "./reference-digits.js";

/** The files of a tokenizer as text, so that a checkpoint is copied without rewriting them. */
export interface TokenizerFiles {
  readonly tokenizerJson: string;
  readonly tokenizerConfigJson: string;
  /** chat_template.jinja, when the template is a file of its own. */
  readonly chatTemplateJinja?: string;
}

type Json = Readonly<Record<string, unknown>>;

function parseObject(text: string, source: string): Json {
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Json;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_POLICY_CHECKPOINT",
      message: `${source} is not JSON.`,
      cause,
      detail: { source },
    });
  }
  throw new MortiseError({
    code: "MORTISE_POLICY_CHECKPOINT",
    message: `${source} is not a JSON object.`,
    detail: { source },
  });
}

function usesByteLevel(decoder: unknown): boolean {
  if (typeof decoder !== "object" || decoder === null) return false;
  const { type, decoders } = decoder as { type?: unknown; decoders?: unknown };
  return type === "ByteLevel" || (Array.isArray(decoders) && decoders.some(usesByteLevel));
}

export class Tokenizer {
  /** Ids of tokens marked special: the only places where a context may be cut (C2). */
  readonly specialIds: ReadonlySet<number>;
  /** One above the highest id. */
  readonly vocabSize: number;
  readonly #library: HuggingFaceTokenizer;
  readonly #encoder: ByteLevelEncoder | undefined;
  /** Bytes per id; undefined when the vocabulary is not byte-level. */
  readonly #bytes: ReadonlyMap<number, Uint8Array> | undefined;

  /**
   * @param options.remembersWords whether ids of words are kept for the next text; they are the same either way
   * @throws MortiseError when tokenizer.json cannot be used.
   */
  constructor(files: TokenizerFiles, { remembersWords = true }: { readonly remembersWords?: boolean } = {}) {
    const json = parseObject(files.tokenizerJson, "tokenizer.json");
    const config = parseObject(files.tokenizerConfigJson, "tokenizer_config.json");
    try {
      this.#library = new HuggingFaceTokenizer(withReferenceDigits(json), config);
      this.#encoder = remembersWords ? ByteLevelEncoder.of(this.#library, json, config) : undefined;
    } catch (cause) {
      throw new MortiseError({
        code: "MORTISE_POLICY_CHECKPOINT",
        message: `tokenizer.json cannot be used: ${(cause as Error).message}.`,
        cause,
        detail: { source: "tokenizer.json" },
      });
    }
    const added = this.#library.get_added_tokens_decoder();
    const vocabulary = this.#library.get_vocab(true);
    this.specialIds = new Set([...added].filter(([, token]) => token.special).map(([id]) => id));
    this.vocabSize = [...vocabulary.values()].reduce((highest, id) => Math.max(highest, id), -1) + 1;
    this.#bytes = usesByteLevel(json.decoder)
      ? this.#byteTable(vocabulary, new Set(added.keys()))
      : undefined;
  }

  #byteTable(vocabulary: ReadonlyMap<string, number>, added: ReadonlySet<number>): Map<number, Uint8Array> {
    const table = new Map<number, Uint8Array>();
    for (const [entry, id] of vocabulary) {
      const bytes = added.has(id) ? undefined : bytesOfEntry(entry);
      table.set(id, bytes ?? new TextEncoder().encode(entry));
    }
    return table;
  }

  encode(text: string): Int32Array {
    return this.encodeWithin(text, Number.POSITIVE_INFINITY) as Int32Array;
  }

  /** As `encode`, but a text of more than `maxTokens` is given up as soon as that is known. */
  encodeWithin(text: string, maxTokens: number): Int32Array | TooManyTokens {
    if (this.#encoder) return this.#encoder.encode(text, maxTokens);
    const { ids } = this.#library.encode(text, { add_special_tokens: false });
    return ids.length > maxTokens ? { estimate: ids.length } : Int32Array.from(ids);
  }

  /** Special tokens appear as their text. Incomplete UTF-8 becomes U+FFFD. */
  decode(ids: Iterable<number>): string {
    const list = [...ids];
    if (this.#bytes === undefined)
      return list.length === 0 ? "" : this.#library.decode(list, { skip_special_tokens: false });
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return list.map((id) => decoder.decode(this.bytesOf(id), { stream: true })).join("") + decoder.decode();
  }

  /** The bytes of one token; undefined when the vocabulary is not byte-level. Unknown ids have none. */
  bytesOf(id: number): Uint8Array | undefined {
    return this.#bytes && (this.#bytes.get(id) ?? new Uint8Array());
  }

  idOf(token: string): number | undefined {
    return this.#library.token_to_id(token);
  }

  tokenOf(id: number): string | undefined {
    return this.#library.id_to_token(id);
  }
}
