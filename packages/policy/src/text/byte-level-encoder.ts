/**
 * Owns the short way from text to ids for byte-level BPE, the kind of nearly every published tokenizer: text is cut
 * into words by the library's own rules, and the ids of a word are remembered. A word seen for the first time goes
 * through the library's own steps, so ids are the library's in every case. Other kinds of tokenizer have no short
 * way; tokenizer.ts then asks the library.
 *
 * E1  Words are independent: the ids of a text are those of its words in order (the definition of BPE over a
 *     pre-tokenizer).
 * E2  Memory is bounded, whatever texts come: words are remembered in two generations, the older one is dropped.
 */
import { toByteCharacters } from "./byte-alphabet.js";

type Json = Readonly<Record<string, unknown>>;

/** Texts hold a few thousand words again and again. */
const GENERATION_WORDS = 32_768;
/** What is longer is rarely met twice. */
const MAX_REMEMBERED_LENGTH = 64;
/** V8 makes shorter substrings copies; longer ones keep the whole text they were cut from alive. */
const SLICE_LENGTH = 13;
const FIRST_IDS = 256;

/** Post-processors that add nothing when no special tokens are asked for. */
const PLAIN_POST_PROCESSORS = ["ByteLevel", "TemplateProcessing"];

/** The library's tokenizer as far as it is used here; its own declarations do not reach this far. */
export interface LibraryTokenizer {
  readonly pre_tokenizer: LibraryStep | null;
  readonly model: {
    readonly fuse_unk: boolean;
    readonly tokens_to_ids: ReadonlyMap<string, number>;
    encode(words: readonly string[]): string[];
  };
}

/** A pre-tokenizer: a sequence of others, a `Split`, a `ByteLevel`, or one this module does not know. */
interface LibraryStep {
  readonly tokenizers?: readonly (LibraryStep | null)[];
  readonly config?: { readonly type: string; readonly invert?: boolean; readonly behavior?: string };
  readonly pattern?: RegExp | null;
  readonly use_regex?: boolean;
  readonly add_prefix_space?: boolean;
  pre_tokenize(text: string): string[];
}

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly lstrip?: boolean;
  readonly rstrip?: boolean;
  readonly normalized?: boolean;
}

interface Parts {
  readonly model: LibraryTokenizer["model"];
  readonly before: readonly LibraryStep[];
  readonly byteLevel: LibraryStep;
  readonly isNfc: boolean;
  readonly addedIds: ReadonlyMap<string, number>;
}

export class ByteLevelEncoder {
  private readonly parts: Parts;
  private readonly added: RegExp | undefined;
  private young = new Map<string, readonly number[]>();
  private old = new Map<string, readonly number[]>();

  private constructor(parts: Parts) {
    this.parts = parts;
    this.added = alternatives([...parts.addedIds.keys()]);
  }

  /** Undefined where the tokenizer is of another kind. */
  static of(
    { pre_tokenizer: preTokenizer, model }: LibraryTokenizer,
    tokenizerJson: Json,
    tokenizerConfig: Json,
  ): ByteLevelEncoder | undefined {
    const { normalizer } = tokenizerJson;
    const isNfc = (normalizer as Json | null)?.type === "NFC";
    const before = stepsOf(preTokenizer);
    const byteLevel = before.pop();
    const added = tokenizerJson.added_tokens as readonly AddedToken[];
    const isKnown =
      byteLevel?.config?.type === "ByteLevel" &&
      byteLevel.add_prefix_space !== true &&
      before.every((step) => step?.config?.type === "Split") &&
      (normalizer === null || isNfc) &&
      (tokenizerJson.model as Json).type === "BPE" &&
      !model.fuse_unk &&
      isPlain(tokenizerJson.post_processor as Json | null) &&
      added.every((token) => !token.lstrip && !token.rstrip && !(token.normalized && isNfc)) &&
      tokenizerConfig.remove_space !== true &&
      tokenizerConfig.do_lowercase_and_remove_accent !== true;
    if (!isKnown) return undefined;
    const addedIds = new Map(added.map((token) => [token.content, token.id]));
    return new ByteLevelEncoder({ model, before: before as LibraryStep[], byteLevel, isNfc, addedIds });
  }

  encode(text: string): Int32Array {
    const ids = new IdList();
    let start = 0;
    if (this.added)
      for (const { 0: token, index } of text.matchAll(this.added)) {
        this.encodePlain(text.slice(start, index), ids);
        ids.push(this.parts.addedIds.get(token)!);
        start = index + token.length;
      }
    this.encodePlain(start === 0 ? text : text.slice(start), ids);
    return ids.toArray();
  }

  /** Text without added tokens. */
  private encodePlain(text: string, ids: IdList): void {
    if (text === "") return;
    for (const word of this.wordsOf(this.parts.isNfc ? text.normalize("NFC") : text)) {
      const known = this.young.get(word) ?? this.fromOld(word) ?? this.firstTime(word);
      for (const id of known) ids.push(id);
    }
  }

  private wordsOf(text: string): readonly string[] {
    const { before, byteLevel } = this.parts;
    let words: readonly string[] = [text];
    for (const step of before) words = words.flatMap((word) => cut(step, word));
    return byteLevel.use_regex ? words.flatMap((word) => word.match(byteLevel.pattern!) ?? []) : words;
  }

  private fromOld(word: string): readonly number[] | undefined {
    const ids = this.old.get(word);
    if (ids) this.remember(word, ids);
    return ids;
  }

  /** The library's own way, from the word on. */
  private firstTime(word: string): readonly number[] {
    const { model } = this.parts;
    const ids = model
      .encode([toByteCharacters(word).join("")])
      .map((token) => model.tokens_to_ids.get(token)!);
    if (word.length <= MAX_REMEMBERED_LENGTH) this.remember(copied(word), ids);
    return ids;
  }

  /** E2 */
  private remember(word: string, ids: readonly number[]): void {
    if (this.young.size === GENERATION_WORDS) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(word, ids);
  }
}

class IdList {
  private ids = new Int32Array(FIRST_IDS);
  private length = 0;

  push(id: number): void {
    if (this.length === this.ids.length) {
      const larger = new Int32Array(this.length * 2);
      larger.set(this.ids);
      this.ids = larger;
    }
    this.ids[this.length++] = id;
  }

  toArray(): Int32Array {
    return this.ids.slice(0, this.length);
  }
}

function stepsOf(step: LibraryStep | null): (LibraryStep | null)[] {
  return step?.tokenizers ? step.tokenizers.flatMap(stepsOf) : [step];
}

function isPlain(postProcessor: Json | null): boolean {
  if (postProcessor === null) return true;
  const { type, processors } = postProcessor;
  if (type === "Sequence") return (processors as Json[]).every(isPlain);
  return PLAIN_POST_PROCESSORS.includes(type as string);
}

/** What the library's step cuts a text into; where its pattern leaves no gaps, matching alone finds the same. */
function cut(step: LibraryStep, text: string): readonly string[] {
  const { pattern, config } = step;
  if (!pattern || config!.invert !== false || config!.behavior !== "Isolated") return step.pre_tokenize(text);
  const words: readonly string[] = text.match(pattern) ?? [];
  let length = 0;
  for (const word of words) length += word.length;
  if (length !== text.length) return step.pre_tokenize(text);
  return words.includes("") ? words.filter((word) => word !== "") : words;
}

/** The longest first, as the library takes them; undefined without any. */
function alternatives(tokens: readonly string[]): RegExp | undefined {
  const sorted = tokens.filter((token) => token !== "").sort((a, b) => b.length - a.length);
  if (sorted.length === 0) return undefined;
  return new RegExp(sorted.map((token) => token.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "g");
}

/** The same text, without the longer one that it was cut from. */
function copied(word: string): string {
  return word.length < SLICE_LENGTH ? word : Buffer.from(word, "utf16le").toString("utf16le");
}
