/**
 * Owns what a search has found so far: hits and gaps, each once, counted whole and listed up to a limit in an order
 * that does not depend on how the search went. Does not judge beyond `isClean`.
 */
import { compareBytes, shownPath } from "../byte-path.js";
import type { Gap, Hit, HitKind, SearchLimits } from "../types.js";

export class Findings {
  readonly #limits: SearchLimits;
  readonly #hits = new Map<string, Hit>();
  readonly #gaps = new Map<string, Gap>();
  searchedFiles = 0;
  searchedBytes = 0;
  decompressedBytes = 0;
  searchedObjects = 0;

  constructor(limits: SearchLimits) {
    this.#limits = limits;
  }

  /** @param path byte string */
  hit(kind: HitKind, path: string, probe: string): void {
    const hit = { kind, path: shownPath(path), probe };
    this.#hits.set(`${hit.path}\0${kind}\0${probe}`, hit);
  }

  gap(path: string, reason: Gap["reason"]): void {
    const isAccepted = reason === "damaged" || reason === "encrypted" || reason === "special-file-system";
    const gap = { path: shownPath(path), reason, isAccepted };
    this.#gaps.set(`${gap.path}\0${reason}`, gap);
  }

  list() {
    const gaps = sorted(this.#gaps);
    return {
      isClean: this.#hits.size === 0 && gaps.every((gap) => gap.isAccepted),
      searchedFiles: this.searchedFiles,
      searchedBytes: this.searchedBytes,
      decompressedBytes: this.decompressedBytes,
      searchedObjects: this.searchedObjects,
      nHits: this.#hits.size,
      hits: sorted(this.#hits).slice(0, this.#limits.listed),
      nGaps: gaps.length,
      // What makes the root not clean is listed first.
      gaps: gaps
        .toSorted((a, b) => Number(a.isAccepted) - Number(b.isAccepted))
        .slice(0, this.#limits.listed),
    };
  }
}

function sorted<T>(found: ReadonlyMap<string, T>): T[] {
  return [...found].sort(([a], [b]) => compareBytes(a, b)).map(([, value]) => value);
}
