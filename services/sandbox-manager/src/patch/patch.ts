/**
 * Owns the patch object: what an agent changed in its workspace, as the difference of two sets of leaves.
 * Does not read file systems (see upper.ts, snapshot.ts) and does not judge changes: the verifier may strip more.
 *
 * P1  Canonical: equal changes give equal bytes on every backend. Entries are sorted by path; times, owners,
 *     empty directories and mode bits other than "executable" are no part of a change.
 * P2  Contained: every path is relative, free of `.`, `..` and `.git`; a symbolic link never leads out of the
 *     workspace; no entry lies below another entry.
 * P3  Bounded: whatever an agent left, reading it ends, with what did not fit named `over-limit`. Nothing an agent can
 *     do to its workspace makes its change unreadable.
 */
import { createHash } from "node:crypto";
import path from "node:path/posix";
import type { DiffLimits, TreeEntry } from "../backend/types.js";

/** Changed leaves of one patch, and directories looked into for them beyond one for each earlier leaf (P3). */
const MAX_LEAVES = 100_000;
const MAX_DIRECTORIES = 100_000;
/** Of a path below the workspace; with the place of the workspace before it, it is one the kernel still takes (P3). */
const MAX_PATH_BYTES = 2048;

export type PatchEntry =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly mode: 0o644 | 0o755;
      readonly content: Uint8Array;
    }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  | { readonly kind: "deleted"; readonly path: string };

/** A change that is deliberately not part of the patch. */
export interface SkippedChange {
  readonly path: string;
  readonly reason:
    | "special-file"
    | "name-not-utf8"
    | "git-metadata"
    | "symlink-leaves-workspace"
    | "over-limit";
}

export interface Patch {
  /** Digest of the tree it was taken against. */
  readonly base: string;
  readonly entries: readonly PatchEntry[];
  readonly skipped: readonly SkippedChange[];
}

/** A leaf found in the workspace after the agent; content is read only when it is needed. */
export type FoundLeaf =
  | {
      readonly kind: "file";
      readonly isExecutable: boolean;
      readonly size: number;
      readonly read: () => Uint8Array;
    }
  | { readonly kind: "symlink"; readonly target: string };

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whether a path stays inside the tree it is relative to, by its spelling (P2). */
export function isContainedPath(candidate: string): boolean {
  if (candidate === "" || candidate.startsWith("/") || candidate.includes("\0")) return false;
  return candidate.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/** Whether a link at `linkPath` with this target stays inside, by spelling; absolute targets never do. */
export function isContainedLink(linkPath: string, target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const resolved = path.normalize(path.join(path.dirname(linkPath), target));
  return resolved !== ".." && !resolved.startsWith("../");
}

/** Builds the canonical patch (P1) from single findings, whatever order they arrive in. */
export class PatchBuilder {
  readonly #before: ReadonlyMap<string, TreeEntry>;
  readonly #base: string;
  readonly #limits: DiffLimits;
  readonly #entries = new Map<string, PatchEntry>();
  readonly #skipped: SkippedChange[] = [];
  /** Paths with an entry below them, now or earlier. */
  readonly #parents = new Set<string>();
  #totalBytes = 0;
  #nFound = 0;
  #nDirectories = 0;
  #isFull = false;
  #sorted: readonly string[] | undefined;

  constructor(base: { digest: string; entries: ReadonlyMap<string, TreeEntry> }, limits: DiffLimits) {
    this.#base = base.digest;
    this.#before = base.entries;
    this.#limits = limits;
  }

  /** Whether enough was found: what comes now is not looked at (P3). */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether a directory is to be looked into; if not, it is left out as a whole (P3). */
  enters(directory: string): boolean {
    this.#nDirectories += 1;
    const isTooMany = this.#nDirectories > MAX_DIRECTORIES + this.#before.size;
    if (isTooMany) this.#isFull = true;
    if (!isTooMany && !isTooLong(directory)) return true;
    this.skip(directory, "over-limit");
    return false;
  }

  /** A change is left out: the leaf, if there was one, counts as unchanged. */
  skip(leafPath: string, reason: SkippedChange["reason"]): void {
    this.#forget(leafPath);
    this.#skipped.push({ path: leafPath, reason });
    this.#count();
  }

  /** A leaf exists afterwards; nothing is recorded if it is as it was before. */
  present(leafPath: string, leaf: FoundLeaf): void {
    this.#forget(leafPath);
    const reason = this.#reasonToSkip(leafPath, leaf);
    if (reason !== undefined) {
      this.skip(leafPath, reason);
      return;
    }
    const entry = asEntry(leafPath, leaf);
    if (isUnchanged(this.#before.get(leafPath), entry)) return;
    if (entry.kind === "file") this.#totalBytes += entry.content.byteLength;
    this.#set(entry);
    this.#count();
  }

  /** Every leaf at or below a path is gone, earlier ones and found ones, unless `present` is told of it later. */
  absent(removedPath: string): void {
    const below = `${removedPath}/`;
    this.#forget(removedPath);
    if (this.#parents.has(removedPath))
      for (const leafPath of this.#entries.keys()) if (leafPath.startsWith(below)) this.#forget(leafPath);
    if (this.#before.has(removedPath)) {
      this.missing(removedPath);
      return;
    }
    const sorted = this.#sortedBefore();
    for (let at = firstNotBelow(sorted, below); sorted[at]?.startsWith(below); at++)
      this.missing(sorted[at]!);
  }

  /** One earlier leaf is gone; what is below its path now stays. */
  missing(leafPath: string): void {
    if (!isGitMetadata(leafPath)) this.#set({ kind: "deleted", path: leafPath });
  }

  /** Whether there is a leaf at a path, by what is known so far. */
  isLeaf(leafPath: string): boolean {
    const entry = this.#entries.get(leafPath);
    return entry === undefined ? this.#before.has(leafPath) : entry.kind !== "deleted";
  }

  /** All paths at which there is or was a leaf. */
  leaves(): string[] {
    return [...new Set([...this.#before.keys(), ...this.#entries.keys()])];
  }

  build(): Patch {
    const byPath = (a: { path: string }, b: { path: string }) =>
      a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
    return {
      base: this.#base,
      entries: [...this.#entries.values()].sort(byPath),
      skipped: this.#skipped.sort(byPath),
    };
  }

  /** Thousands of new leaves must not each look at all the others: `absent` asks who has anything below. */
  #set(entry: PatchEntry): void {
    this.#entries.set(entry.path, entry);
    let at = path.dirname(entry.path);
    for (; at !== "." && !this.#parents.has(at); at = path.dirname(at)) this.#parents.add(at);
  }

  #count(): void {
    this.#nFound += 1;
    if (this.#nFound >= MAX_LEAVES) this.#isFull = true;
  }

  #forget(leafPath: string): void {
    const entry = this.#entries.get(leafPath);
    if (entry?.kind === "file") this.#totalBytes -= entry.content.byteLength;
    this.#entries.delete(leafPath);
  }

  /** Removing one of thousands of directories must not look at every leaf. */
  #sortedBefore(): readonly string[] {
    this.#sorted ??= [...this.#before.keys()].sort();
    return this.#sorted;
  }

  #reasonToSkip(leafPath: string, leaf: FoundLeaf): SkippedChange["reason"] | undefined {
    if (isGitMetadata(leafPath)) return "git-metadata";
    if (this.#isFull || isTooLong(leafPath)) return "over-limit";
    if (leaf.kind === "symlink")
      return isContainedLink(leafPath, leaf.target) ? undefined : "symlink-leaves-workspace";
    const { maxFileBytes, maxTotalBytes } = this.#limits;
    return leaf.size > maxFileBytes || this.#totalBytes + leaf.size > maxTotalBytes
      ? "over-limit"
      : undefined;
  }
}

/** Index of the first of sorted paths that is not less than `path`. */
function firstNotBelow(sorted: readonly string[], path: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < path) low = middle + 1;
    else high = middle;
  }
  return low;
}

function isTooLong(leafPath: string): boolean {
  return Buffer.byteLength(leafPath) > MAX_PATH_BYTES;
}

function isGitMetadata(leafPath: string): boolean {
  return leafPath.split("/").includes(".git");
}

function asEntry(leafPath: string, leaf: FoundLeaf): PatchEntry & { kind: "file" | "symlink" } {
  if (leaf.kind === "symlink") return { kind: "symlink", path: leafPath, target: leaf.target };
  return { kind: "file", path: leafPath, mode: leaf.isExecutable ? 0o755 : 0o644, content: leaf.read() };
}

function isUnchanged(before: TreeEntry | undefined, entry: PatchEntry): boolean {
  if (before?.kind !== entry.kind) return false;
  if (entry.kind === "symlink") return before.sha256 === sha256(entry.target);
  return entry.kind === "file" && before.mode === entry.mode && before.sha256 === sha256(entry.content);
}
