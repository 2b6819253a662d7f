/**
 * Owns under what a set of trials was measured, from what the run recorded, and refusing to compare two sets that were
 * measured otherwise. What has to agree is packages/evaluation's.
 */
import { MortiseError, Outcome, type SandboxReport } from "@mortise/contracts";
import { type Conditions, type Difference, differencesOf, type TrialFact } from "@mortise/evaluation";
import type { RunHistory } from "./run-history.js";

/** @param facts of the set */
export function conditionsOf(history: RunHistory, facts: readonly TrialFact[]): Conditions {
  const inSet = new Set(facts.map(({ trial }) => trial));
  const tasks = new Map<string, { digest: string; graders: Set<string> }>();
  for (const { trial, task } of history.closed) {
    if (!inSet.has(trial) || task === undefined) continue;
    const known = tasks.get(task.id) ?? { digest: task.digest, graders: new Set<string>() };
    tasks.set(task.id, known);
    const verdict = history.verdicts.get(trial);
    if (verdict !== undefined && isJudged(verdict.outcome)) known.graders.add(verdict.grader);
  }
  return {
    protocol: history.protocol,
    harness: history.config?.rollout.harness ?? null,
    harnessVersions: harnessVersions(history),
    tasks,
  };
}

/** As the sandboxes reported them. */
export function harnessVersions({ sandboxes }: Pick<RunHistory, "sandboxes">): string[] {
  return [...new Set([...sandboxes.values()].flatMap(versionIn))].sort();
}

/**
 * @param vary fields that are meant to differ: what the comparison is about, such as `shownTests`
 * @returns those of them that do
 * @throws MORTISE_OPERATOR_PROTOCOLS naming everything else that differs
 */
export function assertComparable(
  before: Conditions,
  after: Conditions,
  vary: readonly string[] = [],
): Difference[] {
  const differences = differencesOf(before, after);
  const unwanted = differences.filter(({ field }) => !vary.includes(field));
  if (unwanted.length === 0) return differences;
  const told = unwanted.map(({ field, before: a, after: b }) => `\n  ${field}: ${a} | ${b}`);
  throw new MortiseError({
    code: "MORTISE_OPERATOR_PROTOCOLS",
    message: `These differ:${told.join("")}`,
    detail: { field: unwanted[0]!.field },
  });
}

function isJudged(outcome: Outcome): boolean {
  return outcome === Outcome.RESOLVED || outcome === Outcome.UNRESOLVED;
}

function versionIn({ fact }: SandboxReport): string[] {
  return fact.case === "ended" && fact.value.harnessVersion !== "" ? [fact.value.harnessVersion] : [];
}
