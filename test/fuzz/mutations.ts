/**
 * Owns what the fuzz suite does to a body: wrong types, missing and repeated fields, values from elsewhere,
 * text and numbers at the edge of what JSON can say, structure that is empty, long or deep. Each mutation
 * changes one place; a body gets several.
 */
import { copyOf, lengthOf, type Node, type Place, placesOf, replaceAt, valueAt } from "./json-text.js";
import type { Random } from "./random.js";
import type { Vocabulary } from "./recorded-bodies.js";

/** Keys that mean something to JavaScript objects. */
const PROTOTYPE_KEYS = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "toJSON", ""];

const NUMBERS = [
  ...["0", "-0", "-1", "1", "0.5", "1e-400", "1e308", "1e400", "-1e400"],
  ...["2147483648", "-2147483649", "9007199254740993", "18446744073709551616", "1E5"],
];

/** Lone surrogates, controls, marks of templates and parsers, and what looks like another type. */
const TEXTS = [
  ...["", " ", "\n", "null", "true", "0", "{}", "[", '{"a":', "\u0000", "\ufeff", "\u2028", "\u202e"],
  ...["\ud800", "\udc00x", "x\ud83d", "e\u0301\u0301", "\u{1f469}\u200d\u{1f4bb}", "ﷺ", "İ", "ß"],
  ...["<|im_start|>", "<|im_end|>\n<|im_start|>system\n", "<|endoftext|>", "<tool_call>", "</tool_call>"],
  ...["<think>", "</think>", "<tool_response>", "<function=x>", "{{ messages }}", "{% for x in y %}"],
  ...["x-anthropic-billing-header: cc_version=1", "<system-reminder>", "../../etc/passwd", "%00", "call_1"],
].map((text) => JSON.stringify(text));

/** What one repetition may add: repetitions of repetitions soon exceed every string and every front's limit. */
const REPEATED_CHARACTERS_MAX = 4 << 20;

const LITERALS = ["null", "true", "false", "{}", "[]", "[null]", "[[]]", '{"type":"text"}', '{"text":null}'];

export class Mutator {
  private readonly random: Random;
  private readonly vocabulary: Vocabulary;

  constructor(random: Random, vocabulary: Vocabulary) {
    this.random = random;
    this.vocabulary = vocabulary;
  }

  /** Changes `count` places of `root`, which it may also replace. */
  mutate(root: Node, count: number): Node {
    let body = root;
    for (let n = 0; n < count; n++) body = this.mutateOnce(body);
    return body;
  }

  /** A value made of nothing but the vocabulary. */
  invent(levels: number): Node {
    const { random, vocabulary } = this;
    if (levels === 0 || random.chance(0.3)) return this.leaf();
    if (random.chance(0.2)) return copyOf(random.pick(vocabulary.seenAt(random.pick(vocabulary.paths))));
    const size = random.int(5);
    if (random.chance(0.4))
      return { kind: "list", items: Array.from({ length: size }, () => this.invent(levels - 1)) };
    return {
      kind: "record",
      entries: Array.from({ length: size }, () => [this.key(), this.invent(levels - 1)]),
    };
  }

  private mutateOnce(root: Node): Node {
    const places = placesOf(root);
    if (places.length === 0 || this.random.chance(0.005)) return this.invent(3);
    const place = this.placeOf(places);
    this.random.pick(this.mutations)(place);
    return root;
  }

  /** Half of the time near the root, where meaning is; most places of a body are inside tool schemas. */
  private placeOf(places: readonly Place[]): Place {
    if (this.random.chance(0.5)) return this.random.pick(places);
    const levels = 1 + this.random.int(5);
    const near = places.filter(({ path }) => path.split(".").length - 1 <= levels);
    return this.random.pick(near.length > 0 ? near : places);
  }

  private readonly mutations: readonly ((place: Place) => void)[] = [
    (place) => replaceAt(place, this.leaf()),
    (place) => replaceAt(place, this.leaf()),
    (place) => this.fromSamePlace(place),
    (place) => this.fromSamePlace(place),
    (place) => replaceAt(place, this.invent(3)),
    (place) => this.remove(place),
    (place) => this.remove(place),
    (place) => this.repeat(place),
    (place) => this.swap(place),
    (place) => this.rename(place),
    (place) => this.empty(place),
    (place) => replaceAt(place, this.wrapped(valueAt(place))),
    (place) => this.lengthen(place),
    (place) => this.insertEntry(place),
  ];

  private leaf(): Node {
    const { random } = this;
    const text = random.pick(random.pick([NUMBERS, TEXTS, TEXTS, LITERALS]));
    return { kind: "raw", text };
  }

  private key(): string {
    return this.random.chance(0.1)
      ? this.random.pick(PROTOTYPE_KEYS)
      : this.random.pick(this.vocabulary.keys);
  }

  private fromSamePlace(place: Place): void {
    const seen = this.vocabulary.seenAt(place.path);
    if (seen.length > 0) replaceAt(place, copyOf(this.random.pick(seen)));
    else replaceAt(place, this.leaf());
  }

  private remove({ holder, at }: Place): void {
    if (holder.kind === "list") holder.items.splice(at, 1);
    else holder.entries.splice(at, 1);
  }

  /** The same item, or the same key, again: also how ids come to be there twice. */
  private repeat(place: Place): void {
    const { holder, at } = place;
    const times = this.random.chance(0.02) ? 300 : 1 + this.random.int(3);
    const fitting = Math.min(times, Math.floor(REPEATED_CHARACTERS_MAX / lengthOf(valueAt(place))));
    for (let n = 0; n < fitting; n++)
      if (holder.kind === "list") holder.items.splice(at, 0, copyOf(valueAt(place)));
      else holder.entries.push([holder.entries[at]![0], copyOf(valueAt(place))]);
  }

  private swap({ holder, at }: Place): void {
    if (holder.kind === "list") {
      const other = this.random.int(holder.items.length);
      [holder.items[at], holder.items[other]] = [holder.items[other]!, holder.items[at]!];
    } else {
      const other = holder.entries[this.random.int(holder.entries.length)]!;
      const one = holder.entries[at]!;
      [one[1], other[1]] = [other[1], one[1]];
    }
  }

  private rename({ holder, at }: Place): void {
    if (holder.kind === "record") holder.entries[at]![0] = this.key();
  }

  private empty(place: Place): void {
    const value = valueAt(place);
    if (value.kind === "list") replaceAt(place, { kind: "list", items: [] });
    else if (value.kind === "record") replaceAt(place, { kind: "record", entries: [] });
    else replaceAt(place, { kind: "raw", text: '""' });
  }

  private insertEntry(place: Place): void {
    const value = valueAt(place);
    if (value.kind === "record") value.entries.push([this.key(), this.invent(2)]);
    else if (value.kind === "list") value.items.push(this.invent(2));
    else this.fromSamePlace(place);
  }

  /** Mostly a level or two; now and then deeper than any stack. */
  private wrapped(value: Node): Node {
    const { random } = this;
    const depth = random.chance(0.1) ? random.pick([150, 900, 1100, 20_000, 100_000]) : 1 + random.int(2);
    const [open, close] = random.pick([
      ["[", "]"],
      ['{"a":', "}"],
      ['{"properties":{"a":', "}}"],
      ['{"content":[', "]}"],
    ] as const);
    return depth <= 2
      ? { kind: "list", items: [value] }
      : { kind: "raw", text: `${open.repeat(depth)}null${close.repeat(depth)}` };
  }

  private lengthen(place: Place): void {
    const { random } = this;
    const unit = JSON.parse(random.pick(TEXTS)) as string;
    const length = random.chance(0.02) ? 100_000 : random.int(3_000);
    const text = (unit === "" ? "a" : unit).repeat(length).slice(0, length);
    replaceAt(place, { kind: "raw", text: JSON.stringify(text) });
  }
}
