/**
 * Owns the probes of a task: the byte strings that must be nowhere, where each comes from, and whether the base files
 * already are what a patch makes of them. Does not search the root.
 */
import { createHash } from "node:crypto";
import type { Pattern } from "../search/matcher.js";
import type { Answers, Distinctiveness, ProbeKind, ProbeReport } from "../types.js";
import { absent, distinctiveLines, distinctiveNames, type ScanBase } from "./distinctive.js";
import { type Hunk, type PatchedFile, parseUnifiedDiff, touchedModules } from "./unified-diff.js";

/** Fewer hexadecimal digits meet by chance in a few gigabytes of checksums. */
const COMMIT_PREFIX_CHARS = 12;
/** As `git describe` and version numbers made from it abbreviate. */
const SHORT_COMMIT_CHARS = 7;
/** Shorter ids are words that others use too. */
const MIN_TEST_ID_CHARS = 16;

export interface ProbeSet {
  /** Searched for everywhere; several patterns may have one id. */
  readonly patterns: readonly Pattern[];
  /** Searched for in compiled files of the touched modules. */
  readonly namePatterns: readonly Pattern[];
  readonly touched: ReadonlySet<string>;
  readonly reports: readonly ProbeReport[];
  readonly distinctiveness: readonly Distinctiveness[];
  /** Hunks that the base files already contain. */
  readonly applied: readonly {
    readonly path: string;
    readonly source: string;
    readonly kind: "gold" | "test";
  }[];
}

export interface Base {
  readonly scan: ScanBase;
  /** Content of a file of the working tree, by its path in a patch. */
  readonly read: (path: string) => string | undefined;
}

export function probesOf(answers: Answers, base: Base): ProbeSet {
  const patterns: Pattern[] = [];
  const namePatterns: Pattern[] = [];
  const reports: ProbeReport[] = [];
  const distinctiveness: Distinctiveness[] = [];
  const counts = new Map<ProbeKind, number>();
  const add = (kind: ProbeKind, source: string, text: string, forms = formsOf(text)): void => {
    const n = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, n);
    const id = `${kind}-${n}`;
    const bytes = Buffer.from(text);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    reports.push({ id, kind, source, nBytes: bytes.byteLength, sha256 });
    const target = kind === "gold-name" ? namePatterns : patterns;
    for (const form of forms) target.push({ id, bytes: Buffer.from(form) });
  };

  const patches = { gold: answers.goldPatch, test: answers.testPatch } as const;
  const applied: { path: string; source: string; kind: "gold" | "test" }[] = [];
  for (const kind of ["gold", "test"] as const) {
    const patch = patches[kind];
    if (patch === undefined) continue;
    const files = parseUnifiedDiff(patch);
    const chosen = distinctiveLines(kind, files, base.scan);
    distinctiveness.push(chosen.distinctiveness);
    for (const { text, source } of chosen.lines) add(kind, source, text);
    if (kind === "gold")
      for (const name of distinctiveNames(files, base.scan)) add("gold-name", "added name", name, [name]);
    for (const file of files)
      for (const hunk of file.hunks.filter((found) => isApplied(file, found, base)))
        applied.push({ path: file.path, source: `${file.path}:${hunk.after[0]?.number ?? 1}`, kind });
  }
  if (answers.hiddenFiles !== undefined) {
    const chosen = distinctiveLines("hidden-file", answers.hiddenFiles.map(asAdded), base.scan);
    distinctiveness.push(chosen.distinctiveness);
    for (const { text, source } of chosen.lines) add("hidden-file", source, text);
  }
  const testIds = (answers.hiddenTests ?? []).filter(isTestId);
  const hidden = new Set(absent(testIds, base.scan));
  testIds.forEach((id, i) => {
    if (hidden.delete(id)) add("test-id", `hiddenTests[${i}]`, id);
  });
  (answers.laterCommits ?? []).forEach((commit, i) => {
    const short = commit.slice(0, SHORT_COMMIT_CHARS);
    const forms = [commit.slice(0, COMMIT_PREFIX_CHARS), `+g${short}`, `-g${short}`];
    add("commit", `laterCommits[${i}]`, commit, forms);
  });
  return { patterns, namePatterns, touched: touchedModules(answers), reports, distinctiveness, applied };
}

/** As it stands in a file, and as JSON and many other notations write it in a string. */
function formsOf(text: string): string[] {
  return [...new Set([text, JSON.stringify(text).slice(1, -1)])];
}

/** A name alone could be any test's; an id says where it is. */
function isTestId(id: string): boolean {
  return id.length >= MIN_TEST_ID_CHARS && /[:/. ]/.test(id);
}

function asAdded({ path, content }: { path: string; content: string }): PatchedFile {
  const lines = content.split("\n").map((text, i) => ({ text, number: i + 1 }));
  return { path, isDeleted: false, hunks: [{ before: [], after: lines, added: lines }] };
}

/** Whether a file is at a hunk's place what the hunk makes of it, and no longer what it was. */
function isApplied({ path, isDeleted }: PatchedFile, hunk: Hunk, base: Base): boolean {
  const after = hunk.after.map(({ text }) => text).join("\n");
  const before = hunk.before.join("\n");
  if (isDeleted || after.trim() === "") return false;
  const content = base.read(path)?.replaceAll("\r\n", "\n");
  if (content === undefined || !content.includes(after)) return false;
  return before.trim() === "" || !content.includes(before);
}
