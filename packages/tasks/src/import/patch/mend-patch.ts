/**
 * Owns making a patch of a record usable: the newline data sets cut off its end, and changes of binary files
 * whose content it does not hold. Whatever else is wrong with it is refused.
 */
import { type Patch, parsePatch } from "./parse-patch.js";

export interface MendedPatch {
  readonly patch: Patch;
  /** What was mended, in words. */
  readonly repairs: readonly string[];
}

/** Throws PatchSyntaxError with the line and what is wrong with it. */
export function mendPatch(text: string): MendedPatch {
  const repairs: string[] = [];
  const isCut = !text.endsWith("\n");
  if (isCut) repairs.push("ended without a newline, which was added");
  const patch = parsePatch(isCut ? `${text}\n` : text);
  const hollow = patch.files.filter(({ isHollow }) => isHollow);
  if (hollow.length === 0) return { patch, repairs };
  const names = hollow.map(({ newPath, oldPath }) => newPath ?? oldPath).join(", ");
  repairs.push(`changes binary files without their content, which was left out: ${names}`);
  const files = patch.files.filter(({ isHollow }) => !isHollow);
  return { patch: { text: files.map((file) => file.text).join(""), files }, repairs };
}

/** Lines added and removed, over all files. */
export function changedLines({ files }: Patch): number {
  return files.reduce((sum, { addedLines, removedLines }) => sum + addedLines + removedLines, 0);
}
