/**
 * Owns the short way from text to ids for byte-level BPE, the kind of nearly every published tokenizer: text is cut
 * into words by the library's own rules, and the ids of a word are remembered. A word seen for the first time goes
 * through the library's own steps, a very long one is merged in pair-merger.ts. Other kinds of tokenizer have no
 * short way; tokenizer.ts then asks the library.
 *
 * E1  Words are independent: the ids of a text are those of its words in order (the definition of BPE over a
 *     pre-tokenizer).
 * E2  What cannot fit is not encoded to its end: a limit stops the work, whatever stands behind it.
 * E3  Memory is bounded, whatever texts come: words are remembered in two generations, the older one is dropped.
 */
import { bytesOfEntry, toByteCharacters } from "./byte-alphabet.js";
import { type BytePairModel, PairMerger } from "./pair-merger.js";

type Json = Readonly<Record<string, unknown>>;

/** Texts hold a few thousand words again and again. */
const GENERATION_WORDS = 32_768;
/** What is longer is rarely met twice. */
const MAX_REMEMBERED_LENGTH = 64;
/** Longer words are merged by ourselves. */
const LONG_WORD = 512;
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
  readonly pairs: BytePairModel & { readonly ignore_merges?: boolean };
}

/** Text of which so much was encoded that it is known to have more tokens than were wanted. */
export interface TooManyTokens {
  /** Of all of it, judged by the part that was encoded. */
  readonly estimate: number;
}

export class ByteLevelEncoder {
  private readonly parts: Parts;
  private readonly added: RegExp | undefined;
  private young = new Map<string, readonly number[]>();
  private old = new Map<string, readonly number[]>();
  private merger: PairMerger | undefined;
  private longestEntryBytes = 0;

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
    const pairs = tokenizerJson.model as BytePairModel;
    return new ByteLevelEncoder({
      model,
      before: before as LibraryStep[],
      byteLevel,
      isNfc,
      addedIds,
      pairs,
    });
  }

  /** Ids of a text; E2 where there would be more than `maxTokens`. */
  encode(text: string, maxTokens: number): Int32Array | TooManyTokens {
    const ids = new IdList();
    let start = 0;
    if (this.added)
      for (const { 0: token, index } of text.matchAll(this.added)) {
        const rest = this.encodePlain(text.slice(start, index), ids, maxTokens);
        if (rest !== undefined) return tooMany(ids.length + rest, index, text.length);
        ids.push(this.parts.addedIds.get(token)!);
        start = index + token.length;
      }
    const rest = this.encodePlain(start === 0 ? text : text.slice(start), ids, maxTokens);
    return rest === undefined ? ids.toArray() : tooMany(ids.length + rest, text.length, text.length);
  }

  /**
   * Text without added tokens. Undefined when all of it is in `ids`; otherwise about how many more there would be.
   */
  private encodePlain(text: string, ids: IdList, maxTokens: number): number | undefined {
    let characters = 0;
    const words = text === "" ? [] : this.wordsOf(this.parts.isNfc ? text.normalize("NFC") : text);
    for (const word of words) {
      if (word.length > LONG_WORD && this.cannotFit(word, maxTokens - ids.length))
        return Math.ceil(Buffer.byteLength(text) / this.longestEntryBytes);
      const known = this.young.get(word) ?? this.fromOld(word) ?? this.firstTime(word);
      for (const id of known) ids.push(id);
      characters += word.length;
      if (ids.length > maxTokens) return Math.ceil(((text.length - characters) * ids.length) / characters);
    }
    return ids.length > maxTokens ? 0 : undefined;
  }

  /** A token stands for at most as many bytes as the longest entry has. */
  private cannotFit(word: string, tokens: number): boolean {
    if (this.longestEntryBytes === 0)
      for (const entry of Object.keys(this.parts.pairs.vocab)) {
        const length = bytesOfEntry(entry)?.length ?? 0;
        if (length > this.longestEntryBytes) this.longestEntryBytes = length;
      }
    return Buffer.byteLength(word) > tokens * this.longestEntryBytes;
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
  private firstTime(word: string): Iterable<number> {
    if (word.length > LONG_WORD) return this.longWord(word);
    const ids = this.byLibrary(word);
    if (word.length <= MAX_REMEMBERED_LENGTH) this.remember(copied(word), ids);
    return ids;
  }

  private byLibrary(word: string): readonly number[] {
    const { model } = this.parts;
    return model.encode([toByteCharacters(word).join("")]).map((token) => model.tokens_to_ids.get(token)!);
  }

  private longWord(word: string): Iterable<number> {
    this.merger ??= PairMerger.of(this.parts.pairs);
    // Where whole words stand before merges, one this long might be an entry.
    if (!this.merger || this.parts.pairs.ignore_merges === true) return this.byLibrary(word);
    return this.merger.merge(new TextEncoder().encode(word));
  }

  /** E3 */
  private remember(word: string, ids: readonly number[]): void {
    if (this.young.size === GENERATION_WORDS) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(word, ids);
  }
}

class IdList {
  length = 0;
  private ids = new Int32Array(FIRST_IDS);

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

/** @param ended the part of a text of `length` characters that `tokens` are known or judged for */
function tooMany(tokens: number, ended: number, length: number): TooManyTokens {
  return { estimate: Math.ceil((tokens * length) / Math.max(1, ended)) };
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
