/**
 * Owns the per-test map of a log: what each name was last reported as, and how a name of a record finds its
 * result. Does not parse anything and does not know which tests a record expects.
 *
 * M1  A name reported more than once is failed when any report failed, except after re-runs, where the last
 *     report counts: the runner itself said that it tried again.
 * M2  A name is looked up whole; then as the first word of longer names, because records of several data
 *     sets were cut at white space; then, when it is cut inside brackets, as a prefix.
 * M3  Where several names answer, any failure wins (first word), or all must agree (prefix).
 */
import { isFailing, isPassing, type LoggedStatus } from "./status.js";

const WHITE_SPACE = /\s/;

export class TestMap {
  readonly #last = new Map<string, LoggedStatus>();
  readonly #failed = new Map<string, LoggedStatus>();
  #hasReruns = false;
  #byFirstWord: Map<string, LoggedStatus> | undefined;
  #sorted: readonly string[] | undefined;

  /** Names reported so far. */
  get size(): number {
    return this.#last.size;
  }

  add(name: string, status: LoggedStatus): void {
    this.#last.set(name, status);
    if (isFailing(status)) this.#failed.set(name, status);
    this.#byFirstWord = undefined;
    this.#sorted = undefined;
  }

  /** Takes the last report of a name as its result, whatever came before. */
  replace(name: string, status: LoggedStatus): void {
    this.#failed.delete(name);
    this.add(name, status);
  }

  /** The runner repeats failed tests: the last report of a name counts (M1). */
  acceptReruns(): void {
    this.#hasReruns = true;
    this.#byFirstWord = undefined;
  }

  /** The result of exactly this name. */
  get(name: string): LoggedStatus | undefined {
    const last = this.#last.get(name);
    if (last === undefined || this.#hasReruns) return last;
    return this.#failed.get(name) ?? last;
  }

  /** The result that answers for a name of a record (M2, M3); undefined when none does. */
  find(expected: string): LoggedStatus | undefined {
    return this.get(expected) ?? this.#firstWords().get(expected) ?? this.#findByPrefix(expected);
  }

  /** Every name with its settled result, in the order of first report. */
  *entries(): IterableIterator<[string, LoggedStatus]> {
    for (const name of this.#last.keys()) yield [name, this.get(name)!];
  }

  hasFailure(): boolean {
    if (!this.#hasReruns || this.#failed.size === 0) return this.#failed.size > 0;
    for (const status of this.#last.values()) if (isFailing(status)) return true;
    return false;
  }

  #firstWords(): ReadonlyMap<string, LoggedStatus> {
    if (this.#byFirstWord !== undefined) return this.#byFirstWord;
    const words = new Map<string, LoggedStatus>();
    for (const [name, status] of this.entries()) {
      const end = name.search(WHITE_SPACE);
      if (end <= 0) continue;
      const word = name.slice(0, end);
      if (!isFailing(words.get(word))) words.set(word, status);
    }
    this.#byFirstWord = words;
    return words;
  }

  #findByPrefix(expected: string): LoggedStatus | undefined {
    if (!isCutInBrackets(expected)) return undefined;
    this.#sorted ??= [...this.#last.keys()].sort(byCodeUnits);
    let found: LoggedStatus | undefined;
    for (let at = firstAtLeast(this.#sorted, expected); at < this.#sorted.length; at += 1) {
      const name = this.#sorted[at]!;
      if (!name.startsWith(expected)) break;
      const status = this.get(name)!;
      if (found !== undefined && isPassing(found) !== isPassing(status)) return undefined;
      found = status;
    }
    return found;
  }
}

/** The id of a parametrised test that lost its end: a bracket opens and never closes. */
export function isCutInBrackets(name: string): boolean {
  let open = 0;
  for (let at = 0; at < name.length; at += 1) {
    const code = name.charCodeAt(at);
    if (code === OPEN) open += 1;
    else if (code === CLOSE && open > 0) open -= 1;
  }
  return open > 0;
}

const OPEN = "[".charCodeAt(0);
const CLOSE = "]".charCodeAt(0);

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function firstAtLeast(sorted: readonly string[], wanted: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
