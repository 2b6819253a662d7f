/**
 * Owns what a report says of one set of trials: the training of a run, or one of its evaluations.
 */
import { mean, quantile } from "@mortise/objectives";
import type { BootstrapSettings } from "../statistics/bootstrap.js";
import { type ScalingPoint, scalingCurve } from "../statistics/scaling.js";
import { type GroupShapes, groupShapes } from "../statistics/shapes.js";
import { type SolveSummary, solveSummary } from "../statistics/solve-summary.js";
import { type PlaceCounts, placeCounts, placeOf, type SetPlan } from "./place-counts.js";
import { attemptsBy, countedBy, isCounted, type TrialFact } from "./trial-fact.js";

/** Of values that were known; how many were. */
export interface Spread {
  readonly count: number;
  readonly mean: number | null;
  readonly median: number | null;
  readonly p95: number | null;
  readonly max: number | null;
}

export interface SetReport {
  readonly set: string;
  /** Every trial that ended, retries and lost ones included. */
  readonly trials: number;
  readonly byTermination: Readonly<Record<string, number>>;
  /** By verdict; `none` was never verified. */
  readonly byVerdict: Readonly<Record<string, number>>;
  /** What the run was to do, and what came of it. */
  readonly places: PlaceCounts;
  readonly lost: {
    /** Trials without a valid verdict. */
    readonly trials: number;
    /** Of them, those another trial repeated. */
    readonly retried: number;
    /** Tasks all of whose attempts were lost: in no rate. */
    readonly tasks: number;
  };
  /** Over tasks. */
  readonly solving: SolveSummary;
  /** Over groups: a task drawn in several epochs has several. */
  readonly groups: GroupShapes;
  readonly attemptsPerTask: Spread;
  /** Of counted trials. */
  readonly sampledTokens: Spread;
  readonly turns: Spread;
  /** Wall time in milliseconds by stage, of all trials that passed through it. */
  readonly stagesMs: Readonly<Record<string, Spread>>;
  /** Choosing one attempt by score; empty unless every counted trial has one. */
  readonly scaling: readonly ScalingPoint[];
}

export function setReport(
  set: string,
  trials: readonly TrialFact[],
  { plan, settings }: { readonly plan?: SetPlan; readonly settings?: BootstrapSettings } = {},
): SetReport {
  const counted = trials.filter(isCounted);
  const byTask = attemptsBy(trials);
  const known = new Set(byTask.map(({ task }) => task));
  const lost = trials.filter((trial) => !isCounted(trial));
  const lastRetry = new Map<string, number>();
  for (const trial of trials)
    lastRetry.set(placeOf(trial), Math.max(trial.retry, lastRetry.get(placeOf(trial)) ?? 0));
  return {
    set,
    trials: trials.length,
    byTermination: tally(trials, ({ termination }) => termination),
    byVerdict: tally(trials, ({ verdict }) => verdict ?? "none"),
    places: placeCounts(trials, plan),
    lost: {
      trials: lost.length,
      retried: lost.filter((trial) => trial.retry < lastRetry.get(placeOf(trial))!).length,
      tasks: new Set(lost.map(({ task }) => task).filter((task) => !known.has(task))).size,
    },
    solving: solveSummary(byTask, settings),
    groups: groupShapes(attemptsBy(trials, "group")),
    attemptsPerTask: spread(byTask.map(({ outcomes }) => outcomes.length)),
    sampledTokens: spread(counted.map(({ sampledTokens }) => sampledTokens)),
    turns: spread(counted.map(({ turns }) => turns)),
    stagesMs: stageSpreads(trials),
    scaling: scalingOf(trials),
  };
}

export function spread(values: readonly (number | undefined)[]): Spread {
  const present = values.filter((value) => value !== undefined);
  return {
    count: present.length,
    mean: mean(present),
    median: quantile(present, 0.5),
    p95: quantile(present, 0.95),
    max: quantile(present, 1),
  };
}

function scalingOf(trials: readonly TrialFact[]): ScalingPoint[] {
  const tasks = [...countedBy(trials, "task")].map(([task, attempts]) => ({
    task,
    attempts: attempts.flatMap(({ score, verdict }) =>
      score === undefined ? [] : [{ score, isResolved: verdict === "resolved" }],
    ),
    isScored: attempts.every(({ score }) => score !== undefined),
  }));
  return tasks.every(({ isScored }) => isScored) ? scalingCurve(tasks) : [];
}

/** Each trial's time in a stage is the sum of its visits. */
function stageSpreads(trials: readonly TrialFact[]): Record<string, Spread> {
  const times = new Map<string, number[]>();
  for (const { stages } of trials) {
    const own = new Map<string, number>();
    for (const { stage, wallMs } of stages) own.set(stage, (own.get(stage) ?? 0) + wallMs);
    for (const [stage, ms] of own) {
      const known = times.get(stage);
      if (known) known.push(ms);
      else times.set(stage, [ms]);
    }
  }
  return Object.fromEntries([...times].map(([stage, values]) => [stage, spread(values)]));
}

/** Counts by name, the most frequent first. */
function tally(trials: readonly TrialFact[], name: (trial: TrialFact) => string): Record<string, number> {
  const counts = new Map<string, number>();
  for (const trial of trials) counts.set(name(trial), (counts.get(name(trial)) ?? 0) + 1);
  return Object.fromEntries([...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)));
}
