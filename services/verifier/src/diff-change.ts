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

/** A plan that applies the diff before its first step. Throws PatchSyntaxError with the line of what is no diff. */
export function planWithDiff(plan: Plan, { text }: DiffChange): Plan {
  const { filter, textPatches = [] } = plan.request;
  const tests = new Set(
    textPatches.flatMap(({ diff = new Uint8Array() }) => pathsOf(Buffer.from(diff).toString())),
  );
  const kept = new Set(filter?.keep ?? []);
  const rules = (filter?.rules ?? []).map(({ pattern = "", reason = "" }) => ({
    covers: coveredBy(pattern),
    reason,
  }));
  const stripped: { path: string; reason: string }[] = [];
  const left = parsePatch(text).files.filter((file) => {
    for (const path of namesOf(file)) {
      const reason = tests.has(path)
        ? "the diff tests changes it"
        : kept.has(path)
          ? undefined
          : rules.find(({ covers }) => covers(path))?.reason;
      if (reason === undefined) continue;
      stripped.push({ path, reason });
      return false;
    }
    return true;
  });
  const diff = left.map((file) => file.text).join("");
  const withChange = <P extends Pick<Plan | CounterPlan, "steps" | "request">>(one: P): P =>
    diff === "" ? one : { ...one, ...applied(one, diff) };
  const { counter } = plan;
  return {
    ...withChange(plan),
    stripped,
    ...(counter === undefined ? {} : { counter: withChange(counter) }),
  };
}

function applied(
  { steps, request }: Pick<Plan, "steps" | "request">,
  diff: string,
): Pick<Plan, "steps" | "request"> {
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
