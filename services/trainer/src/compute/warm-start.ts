/**
 * Owns supervised fine-tuning of the initial policy on demonstrations. Runs in the compute thread.
 *
 *   loss = Σ w_t · (−lp_t) / Σ w_t over the batch; w = 1 on assistant tokens, `promptWeight` on context
 *   AdamW, linear warm-up, then a cosine down to `finalLearningRateShare`
 *
 * `extraSeconds` continues at the final learning rate for that much wall clock: a control that spends the time
 * of reinforcement learning on more imitation. It depends on the machine's speed; everything else here is
 * deterministic in the seed.
 */

import { MortiseError } from "@mortise/contracts";
import { seededRandom, warmupCosine } from "@mortise/objectives";
import type { PolicyModel } from "@mortise/policy";
import type { DemonstrationRows, WeightedRow } from "./demonstrations.js";
import type { WarmStartProgress, WarmStartTask } from "./messages.js";
import { optimiserStep } from "./optimiser-step.js";

/** What fine-tuning is told, whatever its rows are made of. */
export type SupervisedSettings = Omit<WarmStartTask, "demonstrations" | "promptWeight">;

/** How often progress is reported, in steps. */
const PROGRESS_STEPS = 5;

export function warmStart(
  model: PolicyModel,
  demonstrations: readonly DemonstrationRows[],
  task: SupervisedSettings,
  onProgress: (progress: WarmStartProgress) => void,
): void {
  const batches = shuffledBatches(demonstrations, task.batchSize, task.seed);
  const { learningRate, warmupUpdates } = task.optimiser;
  const schedule = {
    peak: learningRate,
    warmup: warmupUpdates,
    total: task.steps,
    finalFraction: task.finalLearningRateShare,
  };
  let step = 0;
  const take = (rate: number): void => {
    const loss = supervisedStep(model, batches.next().value, task, rate, step + 1);
    step += 1;
    if (step % PROGRESS_STEPS === 0 || step === task.steps) onProgress({ step, steps: task.steps, loss });
  };
  while (step < task.steps) take(warmupCosine(step + 1, schedule));
  const until = performance.now() + task.extraSeconds * 1000;
  while (performance.now() < until) take(learningRate * task.finalLearningRateShare);
}

function supervisedStep(
  model: PolicyModel,
  rows: readonly WeightedRow[],
  task: SupervisedSettings,
  rate: number,
  step: number,
): number {
  // Nothing predicts the first token of a row.
  const total = rows.reduce((sum, row) => sum + row.weights.subarray(1).reduce((a, b) => a + b, 0), 0);
  let loss = 0;
  model.zeroGradients();
  model.accumulate(rows, (logp) => ({
    dLogp: logp.map((column, r) => {
      const weights = rows[r]!.weights;
      const slope = new Float32Array(column.length);
      for (let t = 1; t < column.length; t++) {
        loss -= (weights[t]! * column[t]!) / total;
        slope[t] = -weights[t]! / total;
      }
      return slope;
    }),
  }));
  const outcome = model.step(optimiserStep(task.optimiser, rate));
  if (!outcome.skipped && Number.isFinite(loss)) return loss;
  throw new MortiseError({
    code: "MORTISE_TRAINER_NON_FINITE",
    message: `Supervised step ${step}: loss ${loss}, gradient norm ${outcome.gradientNorm}.`,
    detail: { step },
  });
}

/** Endless batches: every demonstration once per pass, in an order drawn from (seed, pass). */
function* shuffledBatches(
  demonstrations: readonly DemonstrationRows[],
  size: number,
  seed: number,
): Generator<readonly WeightedRow[], never> {
  const random = seededRandom(seed);
  let order: number[] = [];
  while (true) {
    const batch: WeightedRow[] = [];
    for (let i = 0; i < size; i++) {
      if (order.length === 0) order = shuffled(demonstrations.length, random);
      batch.push(...demonstrations[order.pop()!]!);
    }
    yield batch;
  }
}

function shuffled(length: number, random: () => number): number[] {
  const order = Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}
