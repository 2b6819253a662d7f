/**
 * Owns the pages of the key-value cache and which token ids each holds. Pages form a tree: the path from the root
 * spells a prefix of ids, so a request that starts like an earlier or a running one finds its keys and values.
 * Does not compute or copy keys and values (decode-pass.ts does).
 *
 *   K1  A page is written by the sequence that created it; others share it only once it is full.
 *   K2  Only tokens counted in `ready` have keys and values that may be copied.
 *   K3  A page is freed or reused only when no sequence and no child page refers to it.
 *   K4  After a change of weights old pages serve the sequences that hold them, and nobody else.
 */
import { PAGE_TOKENS } from "../embedded/network.js";

export interface KvPage {
  /** Index in the cache. */
  readonly index: number;
  readonly parent: KvPage | undefined;
  readonly children: Set<KvPage>;
  /** Ids whose keys and values are in the page or are being computed. */
  readonly ids: number[];
  /** How many of them are computed. */
  ready: number;
  holders: number;
  lastUse: number;
  readonly generation: number;
}

export interface PageMatch {
  readonly page: KvPage;
  /** Leading ids in common. */
  readonly common: number;
}

export class KvTree {
  readonly capacity: number;
  readonly #free: number[];
  readonly #pages = new Set<KvPage>();
  #roots = new Set<KvPage>();
  #generation = 0;
  #clock = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.#free = Array.from({ length: capacity }, (_, i) => capacity - 1 - i);
  }

  get generation(): number {
    return this.#generation;
  }

  /** The child of `parent` that starts like `ids` the longest; undefined when none shares the first id. */
  match(parent: KvPage | undefined, ids: readonly number[]): PageMatch | undefined {
    if (parent !== undefined && parent.generation !== this.#generation) return undefined; // K4
    let best: PageMatch | undefined;
    for (const page of parent?.children ?? this.#roots) {
      const common = commonPrefix(page.ids, ids);
      // Of equals, the one with more computed tokens is of use sooner.
      if (common > (best?.common ?? 0) || (common === best?.common && page.ready > best.page.ready))
        best = { page, common };
    }
    return best;
  }

  /** Marks a page as used by one more sequence. */
  hold(page: KvPage): void {
    page.holders++;
    page.lastUse = ++this.#clock;
  }

  /** The pages stay as a cache until their room is needed, unless their weights are gone. */
  release(pages: readonly KvPage[]): void {
    for (const page of pages.toReversed()) {
      page.holders--;
      page.lastUse = ++this.#clock;
      if (page.generation !== this.#generation) this.#discardIfUnused(page);
    }
  }

  /** A new page below `parent`, held once. The admission rule of the decoder guarantees that there is room. */
  create(parent: KvPage | undefined): KvPage {
    const index = this.#free.pop() ?? this.#evict();
    const generation = parent?.generation ?? this.#generation;
    const page: KvPage = {
      index,
      parent,
      children: new Set(),
      ids: [],
      ready: 0,
      holders: 0,
      lastUse: 0,
      generation,
    };
    this.#pages.add(page);
    (parent?.children ?? this.#roots).add(page);
    this.hold(page);
    return page;
  }

  /** Forgets all prefixes, as the weights have changed (K4). */
  invalidate(): void {
    this.#generation++;
    this.#roots = new Set();
    for (const page of [...this.#pages].sort((a, b) => b.lastUse - a.lastUse)) this.#discardIfUnused(page);
  }

  /** Frees an unused page and then, upwards, every old parent that nobody needs any more (K3). */
  #discardIfUnused(page: KvPage | undefined): void {
    let next = page;
    while (next !== undefined && next.holders === 0 && next.children.size === 0 && this.#pages.has(next)) {
      const parent: KvPage | undefined = next.parent;
      this.#detach(next);
      this.#free.push(next.index);
      next = parent;
    }
  }

  #detach(page: KvPage): void {
    this.#pages.delete(page);
    (page.parent?.children ?? this.#roots).delete(page);
  }

  /** Whether `create` would find a page. */
  hasRoom(): boolean {
    return this.#free.length > 0 || this.#longestUnused() !== undefined;
  }

  #longestUnused(): KvPage | undefined {
    let oldest: KvPage | undefined;
    for (const page of this.#pages) {
      const unused = page.holders === 0 && page.children.size === 0;
      if (unused && (oldest === undefined || page.lastUse < oldest.lastUse)) oldest = page;
    }
    return oldest;
  }

  #evict(): number {
    const oldest = this.#longestUnused();
    if (oldest === undefined) throw new Error("invariant: admission reserved more pages than the cache has");
    this.#detach(oldest);
    return oldest.index;
  }
}

/** Leading ids in common, at most one page. */
function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const limit = Math.min(a.length, b.length, PAGE_TOKENS);
  let n = 0;
  while (n < limit && a[n] === b[n]) n++;
  return n;
}
