/**
 * Owns the bodies of the fuzz suite: body n of a seed is always the same text. Most are recorded bodies with
 * some places changed; some are as recorded, some made up, a few no JSON at all.
 */
import type { Dialect, DialectName } from "@mortise/dialects";
import { copyOf, jsonText } from "./json-text.js";
import { Mutator } from "./mutations.js";
import { Random } from "./random.js";
import { recordedBodies, Vocabulary } from "./recorded-bodies.js";

export interface FuzzBody {
  /** What it is called in a failure; enough to make it again. */
  readonly name: string;
  readonly dialect: DialectName;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Nothing was changed. */
  readonly isRecorded: boolean;
  /** For what else the test does with this body. */
  readonly random: Random;
}

export class Bodies {
  private readonly recorded = recordedBodies();
  private readonly vocabulary = new Vocabulary(this.recorded);
  private readonly seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  body(ordinal: number): FuzzBody {
    const random = new Random(Math.imul(this.seed, 0x9e3779b1) ^ Math.imul(ordinal + 1, 0x85ebca6b));
    const mutator = new Mutator(random, this.vocabulary);
    const { dialect, headers, body } = random.pick(this.recorded);
    const named = { name: `seed ${this.seed}, body ${ordinal}`, dialect, headers, random, isRecorded: false };
    const kind = random.int(100);
    if (kind < 2) return { ...named, text: jsonText(body), isRecorded: true };
    if (kind < 7) return { ...named, text: jsonText(mutator.invent(6)) };
    const mutated = mutator.mutate(copyOf(body), 1 + random.int(random.pick([2, 6, 20])));
    const text = jsonText(mutated);
    return { ...named, text: kind < 10 ? cut(text, random) : text };
  }
}

/** Half a body, or one with a stray character. */
function cut(text: string, random: Random): string {
  const at = random.int(text.length + 1);
  return random.chance(0.5)
    ? text.slice(0, at)
    : `${text.slice(0, at)}${random.pick(["}", ",", "\u0000", "\\"])}${text.slice(at)}`;
}

/** One in ten bodies goes to a protocol it was not written for. */
export function dialectFor(body: FuzzBody, dialects: readonly Dialect[]): Dialect {
  const own = dialects.find(({ name }) => name === body.dialect)!;
  return body.random.chance(0.1) ? body.random.pick(dialects) : own;
}
