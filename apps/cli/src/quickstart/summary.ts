/**
 * Owns what a quick start reports and what it insists on, as pure functions of the run's records.
 * The report's keys are a contract with scripts that read the last line of `--json`.
 */
import { foldLedger } from "@mortise/capture";
import type { EvaluationRecord, Ledger } from "@mortise/contracts";
import { clusteredRise } from "@mortise/objectives";
import type { RunRecords } from "../records/run-records.js";

/** A sampled log-probability may differ from the recomputed one by no more than this on one machine. */
export const MAX_ABS_DELTA_LOGP = 1e-3;

export interface Summary {
  readonly runId: string;
  readonly steps: number;
  readonly seed: number;
  /** Trials that ended, of training and evaluation. */
  readonly trials: number;
  readonly solveRate: {
    readonly before: number | null;
    readonly after: number | null;
    readonly control?: number | null;
    /** Normal 95 % interval of the mean difference per held-out task; null without two evaluations. */
    readonly riseCi95: readonly [number, number] | null;
  };
  /** Training trials only. */
  readonly tokens: {
    readonly sampled: number;
    readonly trained: number;
    readonly baselineOnly: number;
    readonly excluded: number;
    readonly unconsumed: number;
  };
  readonly staleness: { readonly bound: number; readonly max: number | null };
  /** Over all steps: the lowest correlation of probabilities and the greatest difference. */
  readonly consistency: { readonly pearson: number | null; readonly maxAbsDeltaLogp: number | null };
  readonly overheadMsPerTrial: number | null;
  readonly services: readonly { readonly name: string; readonly restarts: number }[];
  readonly durationMs: number;
}

export interface SummaryInput {
  readonly runId: string;
  readonly seed: number;
  readonly stalenessBound: number;
  readonly records: RunRecords;
  readonly control?: EvaluationRecord | undefined;
  readonly overheadMsPerTrial: number | null;
  readonly services: Summary["services"];
  readonly durationMs: number;
}

/** @throws MORTISE_CAPTURE_LEDGER when the records do not balance. */
export function summarise(input: SummaryInput): Summary {
  const { records } = input;
  const before = records.evaluations.get("before");
  const after = records.evaluations.get("after");
  return {
    runId: input.runId,
    steps: records.steps.length,
    seed: input.seed,
    trials: records.endedTrials,
    solveRate: {
      before: rate(before),
      after: rate(after),
      ...(input.control === undefined ? {} : { control: rate(input.control) }),
      riseCi95: riseInterval(before, after),
    },
    tokens: tokenCounts(recomputedLedger(records)),
    staleness: {
      bound: input.stalenessBound,
      max: greatest(records.steps.map((step) => step.staleness?.max)),
    },
    consistency: {
      pearson: least(records.steps.map((step) => step.consistency?.pearsonProbability)),
      maxAbsDeltaLogp: greatest(records.steps.map((step) => step.consistency?.maxAbsDelta)),
    },
    overheadMsPerTrial: input.overheadMsPerTrial,
    services: input.services,
    durationMs: input.durationMs,
  };
}

/** The ledger from the streams themselves (C5), not from what the trainer says. */
export function recomputedLedger({
  seals,
  groups,
  steps,
}: Pick<RunRecords, "seals" | "groups" | "steps">): Ledger {
  const events = [
    ...seals.map((record) => ({ kind: "seal", record }) as const),
    ...groups.map((record) => ({ kind: "group", record }) as const),
    ...steps.map((record) => ({ kind: "step", record }) as const),
  ];
  return foldLedger(events).ledger;
}

/**
 * What is wrong with a finished run, one sentence each; empty when every gate holds.
 * @param isExact whether what sampled computes as what trains does; of another engine the difference is reported, and
 *   what it may be is the operator's to say
 */
export function failedGates(
  summary: Summary,
  records: RunRecords,
  wantedSteps: number,
  isExact = true,
): string[] {
  const failed: string[] = [];
  const { staleness, consistency, tokens } = summary;
  if (summary.steps !== wantedSteps) failed.push(`${summary.steps} of ${wantedSteps} steps were committed`);
  if (records.endedTwice.length > 0) failed.push(`trials ended twice: ${records.endedTwice.join(", ")}`);
  if (staleness.max !== null && staleness.max > staleness.bound) {
    failed.push(`staleness reached ${staleness.max}, the bound is ${staleness.bound}`);
  }
  const published = records.steps.at(-1)?.ledger;
  if (published !== undefined && Number(published.trained) !== tokens.trained) {
    failed.push(`the trainer counts ${published.trained} trained tokens, the streams ${tokens.trained}`);
  }
  if (wantedSteps > 0 && summary.steps > 0 && tokens.trained === 0) {
    failed.push("no token was trained: in no group did the rewards of valid trials differ");
  } else if (isExact && wantedSteps > 0 && !isConsistent(consistency.maxAbsDeltaLogp)) {
    failed.push(
      `max |Δ log-probability| is ${consistency.maxAbsDeltaLogp}, wanted in (0, ${MAX_ABS_DELTA_LOGP}]`,
    );
  }
  return failed;
}

/** Exactly 0 would mean that a number was compared with itself. */
function isConsistent(delta: number | null): boolean {
  return delta !== null && delta > 0 && delta <= MAX_ABS_DELTA_LOGP;
}

function tokenCounts(ledger: Ledger): Summary["tokens"] {
  return {
    sampled: Number(ledger.sampled),
    trained: Number(ledger.trained),
    baselineOnly: Number(ledger.baselineOnly),
    excluded: ledger.excluded.reduce((sum, { tokens }) => sum + Number(tokens), 0),
    unconsumed: Number(ledger.unconsumed),
  };
}

function rate(evaluation: EvaluationRecord | undefined): number | null {
  return evaluation === undefined || evaluation.attempts === 0
    ? null
    : evaluation.solved / evaluation.attempts;
}

/** Attempts at one task share its difficulty: the interval is over tasks, paired by task. */
function riseInterval(before: EvaluationRecord | undefined, after: EvaluationRecord | undefined) {
  if (before === undefined || after === undefined) return null;
  const scores = new Map(after.tasks.map((score) => [score.task, score]));
  const paired = before.tasks.flatMap((score) => {
    const later = scores.get(score.task);
    const isPaired = later !== undefined && later.attempts > 0 && score.attempts > 0;
    return isPaired ? [{ before: outcomes(score), after: outcomes(later) }] : [];
  });
  return clusteredRise(paired)?.interval ?? null;
}

function outcomes({ attempts, solved }: { readonly attempts: number; readonly solved: number }): number[] {
  return Array.from({ length: attempts }, (_, index) => (index < solved ? 1 : 0));
}

function greatest(values: readonly (number | undefined)[]): number | null {
  const present = values.filter((value) => value !== undefined);
  return present.length === 0 ? null : Math.max(...present);
}

function least(values: readonly (number | undefined)[]): number | null {
  const present = values.filter((value) => value !== undefined);
  return present.length === 0 ? null : Math.min(...present);
}
