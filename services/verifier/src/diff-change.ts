/**
 * Owns a change that is given as a unified diff: what of it is left out, and its way into a plan. It is applied outside
 * by a sandbox-manager, by the same ladder as the diff of the tests.
 *
 * D1  The rules for what is left out are those for a change of an agent: configuration of tests, what is loaded
 *     unasked, files the diff of the tests replaces.
 */
import { coveredBy } from "@mortise/contracts";
import { type PatchFile, parsePatch } from "@mortise/tasks";
import type { CounterPlan, Plan, Step } from "./run/plan.js";

export interface DiffChange {
  readonly kind: "diff";
  /** Ends with a newline. */
  readonly text: string;
}

/** The diff of the change, in evidence. */
export const CHANGE = "change";

type Run = Pick<Plan | CounterPlan, "steps" | "request">;

/**
 * A run that applies the diff before its first step, and what of the diff is left out. Throws PatchSyntaxError with the
 * line of what is no diff.
 */
export function withDiff<R extends Run>(
  run: R,
  { text }: DiffChange,
): { readonly run: R; readonly stripped: { path: string; reason: string }[] } {
  const { filter, textPatches = [] } = run.request;
  const tests = new Set(
    textPatches.flatMap(({ diff = new Uint8Array() }) => pathsOf(Buffer.from(diff).toString())),
  );
  const kept = new Set(filter?.keep ?? []);
  const rules = (filter?.rules ?? []).map(({ pattern = "", reason = "" }) => ({
    covers: coveredBy(pattern),
    reason,
  }));
  const whyNot = (path: string) => {
    if (tests.has(path)) return "the diff tests changes it";
    return kept.has(path) ? undefined : rules.find(({ covers }) => covers(path))?.reason;
  };
  const stripped: { path: string; reason: string }[] = [];
  const left = parsePatch(text).files.filter((file) => {
    const path = namesOf(file).find((name) => whyNot(name) !== undefined);
    if (path !== undefined) stripped.push({ path, reason: whyNot(path)! });
    return path === undefined;
  });
  const diff = left.map((file) => file.text).join("");
  return { run: diff === "" ? run : { ...run, ...applied(run, diff) }, stripped };
}

function applied({ steps, request }: Run, diff: string): Run {
  const [first, ...rest] = steps as [Step, ...Step[]];
  const putTextPatches = [CHANGE, ...(first.putTextPatches ?? [])];
  const change = { name: CHANGE, diff: new TextEncoder().encode(diff) };
  return {
    steps: [{ ...first, putTextPatches }, ...rest],
    request: { ...request, textPatches: [...(request.textPatches ?? []), change] },
  };
}

function pathsOf(diff: string): string[] {
  return parsePatch(diff.endsWith("\n") ? diff : `${diff}\n`).files.flatMap(namesOf);
}

function namesOf({ oldPath, newPath }: PatchFile): string[] {
  return [...new Set([oldPath, newPath].filter((path) => path !== undefined))];
}
