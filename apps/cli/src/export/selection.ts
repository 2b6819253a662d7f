/**
 * Owns which trials an export takes: of which set, with which verdict, how many a task. Deterministic: the same records
 * and the same rule give the same trials, whatever order they ended in and whatever is exported of them.
 */
import { createHash } from "node:crypto";
import { isCounted, type TrialFact } from "@mortise/evaluation";

export const VERDICT_RULES = ["resolved", "unresolved", "counted", "all"] as const;
export type VerdictRule = (typeof VERDICT_RULES)[number];

export interface Selection {
  /** Every set when absent. */
  readonly set?: string | undefined;
  /** `counted`: with a valid verdict; `all`: lost ones too. */
  readonly only: VerdictRule;
  /** Of one task; unlimited when absent. */
  readonly atMost?: number | undefined;
}

/** In order of trial id. Which of a task's trials are taken does not depend on their length or time. */
export function selectTrials(facts: readonly TrialFact[], { set, only, atMost }: Selection): TrialFact[] {
  const taken = new Map<string, number>();
  return facts
    .filter((fact) => (set === undefined || fact.set === set) && isWanted(fact, only))
    .map((fact) => ({ fact, rank: rankOf(fact) }))
    .sort((a, b) => compare(a.rank, b.rank))
    .filter(({ fact: { task } }) => {
      const count = taken.get(task) ?? 0;
      taken.set(task, count + 1);
      return atMost === undefined || count < atMost;
    })
    .map(({ fact }) => fact)
    .sort((a, b) => compare(a.trial, b.trial));
}

function isWanted(fact: TrialFact, only: VerdictRule): boolean {
  switch (only) {
    case "all":
      return true;
    case "counted":
      return isCounted(fact);
    default:
      return fact.verdict === only;
  }
}

/** As good as drawn at random, and always the same. */
function rankOf({ trial }: TrialFact): string {
  return createHash("sha256").update(trial).digest("hex");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
