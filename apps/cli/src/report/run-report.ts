/**
 * Owns the content of a report: a run's sets of trials, what ran them, and one set against another. Pure: of records
 * that were read (run-history.ts). How it is printed is lines.ts's; its keys are the JSON that scripts read.
 */
import { MortiseError } from "@mortise/contracts";
import {
  attemptsBy,
  type Comparison,
  compareTasks,
  type Difference,
  protocolDigest,
  type SetReport,
  setReport,
  type TrialFact,
} from "@mortise/evaluation";
import type { behavioursOf, SetBehaviour } from "./behaviours.js";
import { assertComparable, conditionsOf, harnessVersions } from "./conditions.js";
import type { RunHistory } from "./run-history.js";
import { planOf } from "./set-plan.js";
import { setsOf, TRAINING, trialFacts } from "./trial-facts.js";

export interface RunReport {
  readonly run: string;
  readonly source: RunHistory["source"];
  /** As the run file names it; null where only an archive is left. */
  readonly harness: string | null;
  /** As the sandboxes reported them. */
  readonly harnessVersions: readonly string[];
  /** What the run was measured under; null where it names none. */
  readonly protocol: { readonly name: string; readonly digest: string } | null;
  /** Trials whose verdict is a later judgement of its evidence. */
  readonly regraded: number;
  readonly sets: readonly SetReport[];
  /** One row for each set and harness; null with the reason where captured turns cannot be read as text. */
  readonly behaviour: readonly SetBehaviour[] | null;
  readonly behaviourAbsent: string | null;
}

export interface SetComparison extends Comparison {
  readonly from: { readonly run: string; readonly set: string };
  readonly to: { readonly run: string; readonly set: string };
  /** What was meant to differ, and does. */
  readonly varied: readonly Difference[];
}

/** A run's trials, read once for a report and what it is compared with. */
export interface ReportedRun {
  readonly history: RunHistory;
  readonly facts: readonly TrialFact[];
}

export function reportedRun(history: RunHistory, score: string | undefined): ReportedRun {
  return { history, facts: trialFacts(history, score) };
}

export function runReport(
  { history, facts }: ReportedRun,
  behaviours: Awaited<ReturnType<typeof behavioursOf>>,
): RunReport {
  return {
    run: history.run,
    source: history.source,
    harness: history.config?.rollout.harness ?? null,
    harnessVersions: harnessVersions(history),
    protocol: protocolOf(history),
    regraded: history.regraded.size,
    sets: setsOf(facts).map((set) => setReport(set, inSet(facts, set), { plan: planOf(history, set) })),
    behaviour: "rows" in behaviours ? behaviours.rows : null,
    behaviourAbsent: "absent" in behaviours ? behaviours.absent : null,
  };
}

/**
 * @param sets names; where absent the last evaluation of each run, or its training
 * @param vary settings that are meant to differ
 * @throws MortiseError MORTISE_OPERATOR_USAGE for a set a run does not have, MORTISE_OPERATOR_PROTOCOLS for sets that were
 *   measured under different conditions
 */
export function compareRuns(
  from: ReportedRun,
  to: ReportedRun,
  sets: { readonly from?: string | undefined; readonly to?: string | undefined },
  vary: readonly string[] = [],
): SetComparison {
  const fromSet = chosenSet(from, sets.from, "--set");
  const toSet = chosenSet(to, sets.to, "--other-set");
  const [before, after] = [inSet(from.facts, fromSet), inSet(to.facts, toSet)];
  const varied = assertComparable(conditionsOf(from.history, before), conditionsOf(to.history, after), vary);
  return {
    from: { run: from.history.run, set: fromSet },
    to: { run: to.history.run, set: toSet },
    varied,
    ...compareTasks(attemptsBy(before), attemptsBy(after)),
  };
}

/** A run's last two evaluations; undefined when it has fewer. */
export function compareWithin(run: ReportedRun): SetComparison | undefined {
  const [from, to] = evaluationsOf(run).slice(-2);
  return from === undefined || to === undefined ? undefined : compareRuns(run, run, { from, to });
}

function chosenSet(run: ReportedRun, wanted: string | undefined, option: string): string {
  const sets = setsOf(run.facts);
  const set = wanted ?? evaluationsOf(run).at(-1) ?? TRAINING;
  if (sets.includes(set)) return set;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `Run ${run.history.run} has no trials of ${JSON.stringify(set)}.`,
    fix: sets.length === 0 ? "Wait until trials have ended." : `Use one of: ${sets.join(", ")}.`,
    detail: { field: option },
  });
}

function evaluationsOf({ facts }: ReportedRun): string[] {
  return setsOf(facts).filter((set) => set !== TRAINING);
}

function inSet(facts: readonly TrialFact[], set: string): TrialFact[] {
  return facts.filter((fact) => fact.set === set);
}

function protocolOf({ protocol }: RunHistory): RunReport["protocol"] {
  return protocol === undefined ? null : { name: protocol.name, digest: protocolDigest(protocol) };
}
