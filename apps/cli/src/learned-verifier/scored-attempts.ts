/**
 * Owns scoring attempts with a judge and what is told of it: a row an attempt, a summary for each set of each run, since
 * sets are attempts of different policies. Does not choose the attempts.
 */
import { type ScoringSummary, scoringSummary } from "@mortise/evaluation";
import type { JudgedAttempt } from "./examples.js";
import type { Judge } from "./judge.js";
import type { PromptEncoder } from "./prompt-encoder.js";

/** Version of the rows. */
export const SCORES_SCHEMA = 1;

export interface ScoreRow {
  readonly schema: typeof SCORES_SCHEMA;
  readonly run: string;
  readonly set: string;
  readonly task: string;
  readonly trial: string;
  readonly resolved: boolean;
  /** In [0, 1]. */
  readonly p_yes: number;
  readonly log_yes: number;
  readonly log_no: number;
  readonly prompt_tokens: number;
  /** Entries of the log that had no room. */
  readonly entries_left_out: number;
}

export interface SetScoring extends ScoringSummary {
  readonly run: string;
  readonly set: string;
}

/** @returns rows in the order of the attempts, and trials too long to be shown at all */
export function scoreAttempts(
  attempts: readonly JudgedAttempt[],
  judge: Judge,
  encoder: PromptEncoder,
): { readonly rows: ScoreRow[]; readonly tooLong: readonly string[] } {
  const encoded = attempts.map((attempt) => ({ attempt, prompt: encoder.encode(attempt.log) }));
  const shown = encoded.flatMap(({ attempt, prompt }) => (prompt ? [{ attempt, prompt }] : []));
  const scores = judge.scores(shown.map(({ prompt }) => prompt));
  return {
    rows: shown.map(({ attempt: { run, set, task, trial, isResolved }, prompt }, at) => {
      const { pYes, logYes, logNo } = scores[at]!;
      return {
        schema: SCORES_SCHEMA,
        run,
        set,
        task,
        trial,
        resolved: isResolved,
        p_yes: pYes,
        log_yes: logYes,
        log_no: logNo,
        prompt_tokens: prompt.ids.length,
        entries_left_out: prompt.leftOut,
      };
    }),
    tooLong: encoded.flatMap(({ attempt, prompt }) => (prompt ? [] : [attempt.trial])),
  };
}

export function setScorings(rows: readonly ScoreRow[]): SetScoring[] {
  return [...groupedBy(rows, ({ run, set }) => JSON.stringify([run, set])).values()].map((own) => {
    const { run, set } = own[0]!;
    const tasks = [...groupedBy(own, ({ task }) => task)].map(([task, scored]) => ({
      task,
      attempts: scored.map(({ p_yes, resolved }) => ({ score: p_yes, isResolved: resolved })),
    }));
    return { run, set, ...scoringSummary(tasks) };
  });
}

function groupedBy<T>(values: readonly T[], key: (value: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const value of values) {
    const known = groups.get(key(value));
    if (known) known.push(value);
    else groups.set(key(value), [value]);
  }
  return groups;
}
