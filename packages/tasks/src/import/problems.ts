/**
 * Owns what is said of a data set that cannot be taken as it is: rows that are refused, and values that were
 * mended on the way. Does not decide either.
 */
import { MortiseError } from "@mortise/contracts";

/** Why a row is refused. */
export interface RowProblem {
  /** Where the row is: `file.jsonl:12`, `file.parquet row 3`. */
  readonly place: string;
  readonly instance?: string;
  readonly field: string;
  readonly what: string;
  readonly fix: string;
}

/** What was mended in a row, in words. */
export interface RowRepair {
  readonly place: string;
  readonly instance: string;
  readonly field: string;
  readonly what: string;
}

const SHOWN_PROBLEMS = 10;

export function describeProblem({ place, instance, field, what }: RowProblem): string {
  return `${place}${instance === undefined ? "" : ` (${instance})`}: ${field} ${what}`;
}

/** The error for rows that are refused: the first ones, how many there are, and the fix of the first. */
export function recordsRefused(problems: readonly RowProblem[]): MortiseError {
  const first = problems[0]!;
  const shown = problems.slice(0, SHOWN_PROBLEMS).map(describeProblem);
  const more = problems.length - shown.length;
  return new MortiseError({
    code: "MORTISE_TASK_RECORD",
    message: `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}.`,
    fix: `${first.fix} Or pass --skip-invalid to leave such rows out.`,
    detail: { field: first.field, source: first.place, problems: problems.length },
  });
}
