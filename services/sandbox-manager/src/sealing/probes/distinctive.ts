/**
 * Owns choosing, from the lines an answer adds, those that give it away: not in the base files, long, of several
 * words. Does not search for them.
 *
 * A line is looked for without the white space around it, so that another indentation hides nothing. Where a patch
 * has fewer than `ENOUGH` such lines, whole hunks as they stand afterwards are taken as well: they are exact copies
 * or nothing, but tell apart what single lines cannot, such as a changed digit or a deletion.
 */
import { Matcher, MIN_PATTERN_BYTES } from "../search/matcher.js";
import type { Distinctiveness } from "../types.js";
import type { PatchedFile } from "./unified-diff.js";

/** Tells which of some patterns stand in the base files. */
export type ScanBase = (matcher: Matcher) => ReadonlySet<string>;

export interface DistinctiveLine {
  readonly text: string;
  /** `path:line`. */
  readonly source: string;
}

const ENOUGH = 3;
const MAX_PER_FILE = 8;
const MAX_PER_PATCH = 48;
/** One word of many letters says as much as several short ones. */
const STRONG = { chars: 24, words: 3 };
const USABLE = { chars: 12, words: 2 };
/** Scripts and test files are read whole, and much of them is what all such files say. */
const STRONG_IN_HIDDEN_FILE = { chars: 40, words: 4 };
const MAX_BLOCK_BYTES = 16 * 1024;
const MAX_NAMES = 32;
const NAME = /[A-Za-z_][A-Za-z0-9_]{7,}/g;

export function distinctiveLines(
  kind: Distinctiveness["kind"],
  files: readonly PatchedFile[],
  scanBase: ScanBase,
): { lines: DistinctiveLine[]; distinctiveness: Distinctiveness } {
  const added = files.flatMap((file) => file.hunks.flatMap((hunk) => hunk.added));
  const candidates = new Map<string, { file: PatchedFile; source: string }>();
  for (const file of files)
    for (const { text, number } of file.hunks.flatMap((hunk) => hunk.added)) {
      const line = text.trim();
      if (isAtLeast(line, USABLE) && !candidates.has(line))
        candidates.set(line, { file, source: `${file.path}:${number}` });
    }
  const distinctive = absent([...candidates.keys()], scanBase);
  const strong = kind === "hidden-file" ? STRONG_IN_HIDDEN_FILE : STRONG;
  const strongOnes = distinctive.filter((line) => isAtLeast(line, strong));
  const pool = strongOnes.length >= ENOUGH || kind === "hidden-file" ? strongOnes : distinctive;
  const lines: DistinctiveLine[] = [];
  const perFile = new Map<PatchedFile, number>();
  for (const text of pool.toSorted((a, b) => weight(b) - weight(a))) {
    const { file, source } = candidates.get(text)!;
    const nOfFile = perFile.get(file) ?? 0;
    if (nOfFile >= MAX_PER_FILE || lines.length >= MAX_PER_PATCH) continue;
    perFile.set(file, nOfFile + 1);
    lines.push({ text, source });
  }
  if (lines.length < ENOUGH) lines.push(...distinctiveHunks(files, scanBase));
  const distinctiveness = {
    kind,
    nLines: added.length,
    nDistinctive: distinctive.length,
    nProbes: lines.length,
  };
  return { lines, distinctiveness };
}

/** Names a patch brings that the base files do not have, as compiled files keep them. */
export function distinctiveNames(files: readonly PatchedFile[], scanBase: ScanBase): string[] {
  const added = files.flatMap((file) => file.hunks.flatMap((hunk) => hunk.added));
  const names = new Set(added.flatMap(({ text }) => text.match(NAME) ?? []));
  return absent([...names], scanBase).slice(0, MAX_NAMES);
}

function distinctiveHunks(files: readonly PatchedFile[], scanBase: ScanBase): DistinctiveLine[] {
  const sources = new Map<string, string>();
  for (const file of files)
    for (const { after } of file.hunks) {
      const text = after.map((line) => line.text).join("\n");
      if (
        text.trim().length >= USABLE.chars &&
        Buffer.byteLength(text) <= MAX_BLOCK_BYTES &&
        !sources.has(text)
      )
        sources.set(text, `${file.path}:${after[0]!.number}`);
    }
  return absent([...sources.keys()], scanBase)
    .slice(0, MAX_PER_FILE)
    .map((text) => ({ text, source: sources.get(text)! }));
}

/** Those of some texts that the base files do not contain, in the given order. */
export function absent(texts: readonly string[], scanBase: ScanBase): string[] {
  const usable = texts.filter((text) => Buffer.byteLength(text) >= MIN_PATTERN_BYTES);
  if (usable.length === 0) return [];
  const present = scanBase(
    new Matcher(usable.map((text, i) => ({ id: String(i), bytes: Buffer.from(text) }))),
  );
  return usable.filter((_, i) => !present.has(String(i)));
}

function isAtLeast(line: string, { chars, words }: { chars: number; words: number }): boolean {
  return line.length >= chars && wordsOf(line).size >= words;
}

function weight(line: string): number {
  return Math.min(line.length, 100) + 8 * wordsOf(line).size;
}

function wordsOf(line: string): Set<string> {
  return new Set(line.match(/[\p{L}_][\p{L}\p{N}_]{2,}/gu) ?? []);
}
