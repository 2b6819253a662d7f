/**
 * Owns reading a unified diff as far as probes need it: which files it changes, which lines it adds where, and how
 * each hunk looks afterwards. Does not apply anything and forgives what it does not understand.
 */
import type { Answers } from "../types.js";
import { moduleOfSource } from "./python-module.js";

export interface AddedLine {
  readonly text: string;
  /** Of the new file, from 1. */
  readonly number: number;
}

export interface Hunk {
  /** Context and added lines in order: what stands there when it is applied. */
  readonly after: readonly AddedLine[];
  readonly before: readonly string[];
  readonly added: readonly AddedLine[];
}

export interface PatchedFile {
  /** Of the new file; of the old one when it is deleted. */
  readonly path: string;
  readonly isDeleted: boolean;
  readonly hunks: readonly Hunk[];
}

export function parseUnifiedDiff(patch: string): PatchedFile[] {
  const files: { path: string; isDeleted: boolean; hunks: Hunk[] }[] = [];
  const lines = patch.split("\n");
  let oldPath = "";
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!;
    if (line.startsWith("--- ")) oldPath = pathOf(line.slice(4));
    else if (line.startsWith("+++ ")) {
      const path = pathOf(line.slice(4));
      const isDeleted = path === "/dev/null";
      files.push({ path: isDeleted ? oldPath : path, isDeleted, hunks: [] });
    } else if (line.startsWith("@@ ") && files.length > 0) {
      const { hunk, next } = readHunk(lines, i);
      files.at(-1)!.hunks.push(hunk);
      i = next - 1;
    }
  }
  return files;
}

function readHunk(lines: readonly string[], header: number): { hunk: Hunk; next: number } {
  const numbers = /^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(lines[header]!);
  let oldLeft = Number(numbers?.[1] ?? 1);
  let newLeft = Number(numbers?.[3] ?? 1);
  let number = Number(numbers?.[2] ?? 1);
  const after: AddedLine[] = [];
  const added: AddedLine[] = [];
  const before: string[] = [];
  let at = header + 1;
  for (; at < lines.length && (oldLeft > 0 || newLeft > 0); at++) {
    const line = lines[at]!;
    if (line.startsWith("\\")) continue;
    const text = line.slice(1).replace(/\r$/, "");
    if (line.startsWith("+")) {
      const found = { text, number: number++ };
      after.push(found);
      added.push(found);
      newLeft -= 1;
    } else if (line.startsWith("-")) {
      before.push(text);
      oldLeft -= 1;
    } else {
      // A context line; editors strip the space of an empty one.
      after.push({ text, number: number++ });
      before.push(text);
      oldLeft -= 1;
      newLeft -= 1;
    }
  }
  return { hunk: { after, before, added }, next: at };
}

/** Without the prefix of a side, the time some programs add, and the quotes of unusual names. */
function pathOf(field: string): string {
  const bare = field
    .split("\t")[0]!
    .trim()
    .replace(/^"(.*)"$/, "$1");
  return bare === "/dev/null" ? bare : bare.replace(/^[abiwco]\//, "");
}

/** The modules the patches change, as python-module.ts calls them. */
export function touchedModules({ goldPatch, testPatch }: Answers): ReadonlySet<string> {
  const files = [goldPatch, testPatch].flatMap((patch) => parseUnifiedDiff(patch ?? ""));
  return new Set(files.map(({ path }) => moduleOfSource(path)));
}
