/**
 * Owns leaving parts of a change out, so that they stay as the pristine task has them. Does not know why a path is to
 * stay: whoever grades gives the rules.
 *
 * F1  An exact rule also covers what would stand in its path's way: an entry at a directory above it, or below it.
 * F2  A rule for a name (two stars, a slash and the name) covers every path with such a part, at any level.
 */
import type { FilterRule } from "@mortise/contracts";
import type { Patch, PatchEntry } from "../patch/patch.js";

const EVERY_LEVEL = "**/";

export interface FilterRules {
  readonly rules: readonly Pick<FilterRule, "pattern" | "reason">[];
  /** Paths applied whatever the rules say. */
  readonly keep: readonly string[];
}

export interface Stripped {
  readonly path: string;
  readonly reason: string;
}

export interface FilteredPatch {
  readonly patch: Patch;
  /** What was left out, with the reason of the first rule that covers it. */
  readonly stripped: readonly Stripped[];
}

/** The change without what the rules cover. */
export function filterPatch(patch: Patch, { rules, keep }: FilterRules): FilteredPatch {
  const kept = new Set(keep);
  const tests = rules.map(({ pattern, reason }) => ({ covers: coveredBy(pattern), reason }));
  const entries: PatchEntry[] = [];
  const stripped: Stripped[] = [];
  for (const entry of patch.entries) {
    const rule = kept.has(entry.path) ? undefined : tests.find(({ covers }) => covers(entry.path));
    if (rule === undefined) entries.push(entry);
    else stripped.push({ path: entry.path, reason: rule.reason });
  }
  return { patch: { ...patch, entries }, stripped };
}

function coveredBy(pattern: string): (path: string) => boolean {
  if (!pattern.startsWith(EVERY_LEVEL))
    return (path) => path === pattern || pattern.startsWith(`${path}/`) || path.startsWith(`${pattern}/`);
  const parts = pattern.slice(EVERY_LEVEL.length).split("*");
  const name = new RegExp(
    `^${parts.map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`,
  );
  return (path) => path.split("/").some((part) => name.test(part));
}
