/**
 * Owns reading the attempts of runs that a learned verifier may be shown: those with a valid verdict, captured and sealed,
 * and holding no secret. Reads records, writes nothing.
 */
import { MortiseError } from "@mortise/contracts";
import { isCounted } from "@mortise/evaluation";
import { exportedTrials, type LeftOut } from "../export/exported-trial.js";
import type { RunPlace } from "../records/run-source.js";
import { readRunHistory } from "../report/run-history.js";
import { runText } from "../report/run-text.js";
import { setsOf, trialFacts } from "../report/trial-facts.js";
import type { JudgedAttempt } from "./examples.js";
import { trialLog } from "./trial-log.js";

export interface AttemptSource extends RunPlace {
  /** Every set when empty. */
  readonly sets: readonly string[];
  /** What captured ids are read with; the run's own checkpoint when absent. */
  readonly tokenizer?: string | undefined;
}

export interface ReadAttempts {
  readonly attempts: readonly JudgedAttempt[];
  /** With a valid verdict, and not to be shown. */
  readonly leftOut: readonly LeftOut[];
  /** Closed trials without a valid verdict. */
  readonly invalid: number;
}

/** @throws MortiseError MORTISE_OPERATOR_USAGE for a set no run has, and what reading a run throws */
export async function judgedAttempts(runs: readonly string[], source: AttemptSource): Promise<ReadAttempts> {
  const attempts: JudgedAttempt[] = [];
  const leftOut: LeftOut[] = [];
  const known = new Set<string>();
  let invalid = 0;
  for (const run of new Set(runs)) {
    const history = await readRunHistory(run, source);
    const facts = trialFacts(history);
    for (const set of setsOf(facts)) known.add(set);
    const wanted = facts.filter(({ set }) => source.sets.length === 0 || source.sets.includes(set));
    const counted = wanted.filter(isCounted);
    invalid += wanted.length - counted.length;
    const text = await runText(history, source.tokenizer, "--tokenizer");
    const exported = exportedTrials(history, counted, text);
    leftOut.push(...exported.leftOut);
    for (const trial of exported.trials) {
      const { set, task, trial: id, verdict } = trial.fact;
      attempts.push({
        run,
        set,
        task,
        trial: id,
        isResolved: verdict === "resolved",
        log: trialLog(trial, text),
      });
    }
  }
  const unknown = source.sets.find((set) => !known.has(set));
  if (unknown === undefined) return { attempts, leftOut, invalid };
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `No trial is of ${JSON.stringify(unknown)}.`,
    fix: `Use some of: ${[...known].join(", ")}.`,
    detail: { field: "--set" },
  });
}
