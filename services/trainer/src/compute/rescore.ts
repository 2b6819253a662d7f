/**
 * Owns recomputing recorded log-probabilities under the version that sampled each token (DESIGN §6), and their
 * comparison. Does not own the measures (packages/objectives) nor what is scored twice (independent-check.ts).
 */
import { type Consistency, consistency } from "@mortise/objectives";
import type { PolicyModel } from "@mortise/policy";
import type { IndependentScorer } from "./independent-check.js";
import type { StepTask } from "./messages.js";

export interface Rescored {
  /** Over the comparisons of both implementations; a token compared twice is counted once. */
  readonly consistency: Consistency;
  /** Over those of the independent implementation alone. */
  readonly independent: Consistency;
  readonly drift: Consistency;
}

export interface Scorers {
  /** A model with the kernels that train; asked for when tokens of older versions are there. */
  training(): PolicyModel;
  readonly independent: IndependentScorer | undefined;
  /** undefined when the weights of a version are gone; its tokens are then missing (C10). */
  weightsOf(version: number): Uint8Array | undefined;
}

/** Log-probabilities of some rows under one version, or undefined when they cannot be had. */
type Score = (version: number, rows: readonly number[]) => readonly Float32Array[] | undefined;

/** Recorded log-probabilities beside recomputed ones, of the trained tokens of some rows. */
interface Pairs {
  readonly recorded: readonly number[];
  readonly recomputed: readonly number[];
}

/** @param start log-probabilities per row under the weights the step starts from, by the kernels that train */
export function rescore(task: StepTask, start: readonly Float32Array[], scorers: Scorers): Rescored {
  const all = [...task.rows.keys()];
  const trained = pairs(task, all, (version, rows) =>
    version === task.version
      ? rows.map((i) => start[i]!)
      : scored(task, scorers.training, version, rows, scorers),
  );
  const { independent } = scorers;
  const again = pairs(task, independent?.rows ?? [], (version, rows) =>
    scored(task, () => independent!.model, version, rows, scorers),
  );
  const alone = consistency(again.recorded, again.recomputed);
  const merged = consistency(
    [...trained.recorded, ...again.recorded],
    [...trained.recomputed, ...again.recomputed],
  );
  const drift = pairs(task, all, (_version, rows) => rows.map((i) => start[i]!));
  return {
    consistency: {
      ...merged,
      nTokens: merged.nTokens - alone.nTokens,
      nMissing: merged.nMissing - alone.nMissing,
    },
    independent: alone,
    drift: consistency(drift.recorded, drift.recomputed),
  };
}

function scored(
  task: StepTask,
  model: () => PolicyModel,
  version: number,
  rows: readonly number[],
  { weightsOf }: Pick<Scorers, "weightsOf">,
): readonly Float32Array[] | undefined {
  const weights = weightsOf(version);
  if (!weights) return undefined;
  const scorer = model();
  scorer.loadWeights(weights);
  return scorer.logProbabilities(
    rows.map((i) => task.rows[i]!),
    { temperature: task.temperature },
  );
}

/** Each trained token of the rows under the version that sampled it; NaN where that cannot be scored. */
function pairs(task: StepTask, rows: readonly number[], score: Score): Pairs {
  const recorded: number[] = [];
  const recomputed: number[] = [];
  for (const version of versionsIn(task, rows)) {
    const holding = rows.filter((i) => trainedPlaces(task.rows[i]!, version).length > 0);
    const columns = score(version, holding);
    for (const [at, i] of holding.entries()) {
      for (const t of trainedPlaces(task.rows[i]!, version)) {
        recorded.push(task.rows[i]!.behaviour[t]!);
        recomputed.push(columns?.[at]?.[t] ?? Number.NaN);
      }
    }
  }
  return { recorded, recomputed };
}

function trainedPlaces({ mask, versions }: StepTask["rows"][number], version: number): number[] {
  return [...mask.keys()].filter((t) => mask[t] === 1 && versions[t] === version);
}

function versionsIn(task: StepTask, rows: readonly number[]): number[] {
  const versions = new Set<number>();
  for (const i of rows) {
    const { mask, versions: sampled } = task.rows[i]!;
    for (let t = 0; t < mask.length; t++) if (mask[t] === 1) versions.add(sampled[t]!);
  }
  return [...versions].sort((a, b) => a - b);
}
