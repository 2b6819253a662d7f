/** Owns the translation of a plan into the task of the compute thread. */
import type { RunConfig } from "@mortise/contracts";
import type { Objective } from "@mortise/objectives";
import type { StepTask } from "../compute/messages.js";
import type { StepPlan } from "./plan-step.js";

export interface StepTaskOptions {
  readonly config: RunConfig;
  readonly objective: Objective;
  /** Version the step starts from. */
  readonly version: number;
  readonly updates: number;
}

/** Seeds of different steps must differ whatever the seed of the run. */
const STEPS_PER_SEED = 1_000_003;

export function stepTask(plan: StepPlan, { config, objective, version, updates }: StepTaskOptions): StepTask {
  const { trainer, rollout, run } = config;
  return {
    version,
    trials: plan.trials.map(({ advantage, trainedTokens }) => ({ advantage, trainedTokens })),
    rows: plan.trials.flatMap((trial, index) =>
      trial.sequences.map(({ ids, mask, logProbabilities, versions }) => ({
        trial: index,
        ids,
        mask,
        behaviour: logProbabilities,
        versions,
      })),
    ),
    objective,
    ratio: trainer.ratio,
    temperature: rollout.temperature,
    epochs: trainer.epochs,
    miniBatches: trainer.miniBatches,
    optimiser: trainer.optimiser,
    updates,
    seed: run.seed * STEPS_PER_SEED + version,
    independentTrials: trainer.independentTrials,
  };
}
