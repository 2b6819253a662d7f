/**
 * Owns leaving parts of a change out, so that they stay as the pristine task has them. Does not know why a path is to
 * stay: whoever grades gives the rules.
 */
import { coveredBy, type FilterRule } from "@mortise/contracts";
import type { Patch, PatchEntry } from "../patch/patch.js";

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
