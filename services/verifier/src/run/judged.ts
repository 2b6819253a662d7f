/** Owns what a run record is judged to be. Does not judge (see results/, log/ and reward/). */
import type { TestVerdict, VerdictOutcome } from "@mortise/grading";
import type { Noticed } from "./run-record.js";

export interface Judged {
  readonly outcome: VerdictOutcome;
  /** In [0, 1]; absent when invalid. */
  readonly reward?: number;
  readonly reason: string;
  /** Of tampering: the evidence leaves no other explanation. */
  readonly conclusive: boolean;
  readonly tests: readonly {
    readonly name: string;
    readonly status: TestVerdict;
    readonly durationMs?: number;
  }[];
  readonly components: readonly { readonly name: string; readonly value: number }[];
  /** Name and version of parser and rules. */
  readonly grader: string;
  readonly findings: readonly Noticed[];
}

type Parts = Pick<Judged, "grader"> &
  Partial<Pick<Judged, "tests" | "components" | "findings" | "conclusive">>;

/** No reward: nothing of it is a test result. */
export function invalid(
  kind: "infra" | "task" | "tamper",
  reason: string,
  { grader, tests = [], components = [], findings = [], conclusive = false }: Parts,
): Judged {
  return { tests, components, findings, conclusive, grader, outcome: `invalid-${kind}`, reason };
}

export function unresolved(reason: string, parts: Parts): Judged {
  return {
    tests: [],
    components: [],
    findings: [],
    ...parts,
    conclusive: false,
    outcome: "unresolved",
    reward: 0,
    reason,
  };
}
