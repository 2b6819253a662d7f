/**
 * Owns byte-pair merging of one long word: lines without a break, encoded data, a file of one letter. The library
 * merges such a word as objects and texts, some microseconds and hundreds of bytes for each of its bytes; here it is
 * numbers in arrays. The result is the definition's: again and again the earliest merge there is, the leftmost first.
 */
import { BYTE_CHARACTERS } from "./byte-alphabet.js";

export interface BytePairModel {
  readonly vocab: Readonly<Record<string, number>>;
  /** Pairs of entries in the order they were learnt, or each as one text with a space between. */
  readonly merges: readonly (string | readonly [left: string, right: string])[];
}

/** Positions stand below ranks in one number; a word is shorter than this and a vocabulary than 2^26. */
const POSITIONS = 2 ** 27;
const NONE = -1;

export class PairMerger {
  private readonly byteIds: Int32Array;
  private readonly merges = new Map<number, { readonly rank: number; readonly id: number }>();
  private readonly size: number;

  private constructor(byteIds: Int32Array, { vocab, merges }: BytePairModel) {
    this.byteIds = byteIds;
    this.size = Object.values(vocab).reduce((highest, id) => Math.max(highest, id), 0) + 1;
    for (const [rank, merge] of merges.entries()) {
      const [left, right] = typeof merge === "string" ? (merge.split(" ", 2) as [string, string]) : merge;
      const [a, b, id] = [vocab[left], vocab[right], vocab[left + right]];
      // Of a pair that is named twice the last counts, as in the library.
      if (a !== undefined && b !== undefined && id !== undefined)
        this.merges.set(this.key(a, b), { rank, id });
    }
  }

  /** Undefined for a vocabulary in which some byte or merged pair has no entry: its words may lose text. */
  static of(model: BytePairModel): PairMerger | undefined {
    const byteIds = BYTE_CHARACTERS.map((character) => model.vocab[character] ?? NONE);
    if (byteIds.includes(NONE)) return undefined;
    const merger = new PairMerger(Int32Array.from(byteIds), model);
    return merger.merges.size === model.merges.length ? merger : undefined;
  }

  /** Ids of one word, from its UTF-8 bytes. */
  merge(bytes: Uint8Array): Int32Array {
    const ids = Int32Array.from(bytes, (byte) => this.byteIds[byte]!);
    const next = Int32Array.from(ids, (_, at) => at + 1);
    const before = Int32Array.from(ids, (_, at) => at - 1);
    const queue = new Queue(ids.length);
    const offer = (at: number) => {
      const merge = next[at]! < ids.length ? this.mergeOf(ids[at]!, ids[next[at]!]!) : undefined;
      if (merge) queue.push(merge.rank * POSITIONS + at);
    };
    for (let at = 0; at < ids.length; at++) offer(at);
    for (let top = queue.pop(); top !== undefined; top = queue.pop()) {
      const at = top % POSITIONS;
      const right = next[at]!;
      if (ids[at] === NONE || right >= ids.length) continue;
      const merge = this.mergeOf(ids[at]!, ids[right]!);
      // The pair that was queued here is another by now; what it became is queued too.
      if (merge?.rank !== Math.floor(top / POSITIONS)) continue;
      ids[at] = merge.id;
      ids[right] = NONE;
      next[at] = next[right]!;
      if (next[at]! < ids.length) before[next[at]!] = at;
      if (before[at]! >= 0) offer(before[at]!);
      offer(at);
    }
    return ids.filter((id) => id !== NONE);
  }

  private mergeOf(left: number, right: number) {
    return this.merges.get(this.key(left, right));
  }

  private key(left: number, right: number): number {
    return left * this.size + right;
  }
}

/** The smallest number first. */
class Queue {
  private items: Float64Array;
  private length = 0;

  constructor(capacity: number) {
    this.items = new Float64Array(Math.max(16, capacity));
  }

  push(value: number): void {
    if (this.length === this.items.length) {
      const larger = new Float64Array(this.length * 2);
      larger.set(this.items);
      this.items = larger;
    }
    const { items } = this;
    let at = this.length++;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (items[up]! <= value) break;
      items[at] = items[up]!;
      at = up;
    }
    items[at] = value;
  }

  pop(): number | undefined {
    if (this.length === 0) return undefined;
    const { items } = this;
    const top = items[0]!;
    const last = items[--this.length]!;
    let at = 0;
    for (let down = 1; down < this.length; down = 2 * at + 1) {
      if (down + 1 < this.length && items[down + 1]! < items[down]!) down++;
      if (items[down]! >= last) break;
      items[at] = items[down]!;
      at = down;
    }
    items[at] = last;
    return top;
  }
}
