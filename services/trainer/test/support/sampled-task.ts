/** A step's task over rows of a tiny policy whose recorded log-probabilities are really its own. */
import { RunConfig } from "@mortise/contracts";
import { objectiveOf } from "@mortise/objectives";
import type { PolicyModel } from "@mortise/policy";
import type { StepRow, StepTask } from "../../src/compute/messages.js";

export const optimiser = RunConfig.parse({
  run: { id: "r" },
  policy: { checkpoint: "c" },
  trainer: { optimiser: { learningRate: 1e-3, warmupUpdates: 0, beta1: 0.9, beta2: 0.99, weightDecay: 0 } },
}).trainer.optimiser;

/**
 * Three trials, the second of two sequences, sampled by `scorer` under `weights` as version 0: the recorded
 * log-probabilities are its own.
 */
export function sampledTask(
  scorer: PolicyModel,
  weights: Uint8Array,
  overrides: Partial<StepTask> = {},
): StepTask {
  scorer.loadWeights(weights);
  const drafts = [
    { trial: 0, ids: [1, 2, 3, 4, 5, 6] },
    { trial: 1, ids: [1, 2, 9, 8] },
    { trial: 1, ids: [1, 7, 7, 3, 2] },
    { trial: 2, ids: [4, 4, 1, 0, 2] },
  ].map(({ trial, ids }) => ({ trial, ids: Int32Array.from(ids) }));
  const behaviour = scorer.logProbabilities(drafts);
  const rows: StepRow[] = drafts.map((draft, i) => {
    const mask = Uint8Array.from(draft.ids, (_, t) => (t < 2 ? 0 : 1));
    return {
      ...draft,
      mask,
      behaviour: behaviour[i]!.map((lp, t) => (mask[t] === 1 ? lp : Number.NaN)),
      versions: Int32Array.from(mask, (bit) => (bit === 1 ? 0 : -1)),
    };
  });
  return {
    version: 0,
    trials: [
      { advantage: 1, trainedTokens: 4 },
      { advantage: -0.5, trainedTokens: 5 },
      { advantage: -0.8, trainedTokens: 3 },
    ],
    rows,
    objective: objectiveOf("grpo", 100),
    ratio: "behaviour",
    temperature: 1,
    epochs: 1,
    miniBatches: 1,
    optimiser,
    updates: 0,
    seed: 5,
    independentTrials: 0,
    ...overrides,
  };
}
