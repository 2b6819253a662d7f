/**
 * Owns recomputing recorded log-probabilities under the version that sampled each token (DESIGN §6), and their
 * comparison. Does not own the measures (packages/objectives).
 */
import { type Consistency, consistency } from "@mortise/objectives";
import type { PolicyModel } from "@mortise/policy";
import type { StepTask } from "./messages.js";

export interface Rescored {
  readonly consistency: Consistency;
  readonly drift: Consistency;
}

/**
 * @param start log-probabilities per row under the weights the step starts from
 * @param weightsOf weights of an older version; undefined when they are gone, and its tokens are then missing (C10)
 */
export function rescore(
  scorer: () => PolicyModel,
  task: StepTask,
  start: readonly Float32Array[],
  weightsOf: (version: number) => Uint8Array | undefined,
): Rescored {
  const recomputed = task.rows.map((row) => new Float32Array(row.ids.length).fill(Number.NaN));
  for (const version of versionsIn(task)) {
    const rows = [...task.rows.keys()].filter((i) => task.rows[i]!.versions.includes(version));
    const scored = scoreUnder(scorer, task, rows, version, start, weightsOf);
    for (const [at, i] of rows.entries()) {
      const { versions } = task.rows[i]!;
      for (let t = 0; t < versions.length; t++) {
        if (versions[t] === version) recomputed[i]![t] = scored?.[at]?.[t] ?? Number.NaN;
      }
    }
  }
  return { consistency: compare(task, recomputed), drift: compare(task, start) };
}

function scoreUnder(
  scorer: () => PolicyModel,
  task: StepTask,
  rows: readonly number[],
  version: number,
  start: readonly Float32Array[],
  weightsOf: (version: number) => Uint8Array | undefined,
): readonly Float32Array[] | undefined {
  if (version === task.version) return rows.map((i) => start[i]!);
  const weights = weightsOf(version);
  if (!weights) return undefined;
  const model = scorer();
  model.loadWeights(weights);
  return model.logProbabilities(
    rows.map((i) => task.rows[i]!),
    { temperature: task.temperature },
  );
}

/** Compares over trained tokens only. */
function compare(task: StepTask, train: readonly Float32Array[]): Consistency {
  const recorded: number[] = [];
  const recomputed: number[] = [];
  for (const [i, row] of task.rows.entries()) {
    for (let t = 0; t < row.mask.length; t++) {
      if (row.mask[t] === 0) continue;
      recorded.push(row.behaviour[t]!);
      recomputed.push(train[i]![t]!);
    }
  }
  return consistency(recorded, recomputed);
}

function versionsIn(task: StepTask): number[] {
  const versions = new Set<number>();
  for (const row of task.rows) {
    for (let t = 0; t < row.mask.length; t++) if (row.mask[t] === 1) versions.add(row.versions[t]!);
  }
  return [...versions].sort((a, b) => a - b);
}
