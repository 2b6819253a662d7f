/**
 * Owns the numbers of the quick start: the demo policy, its demonstrations, warm start and reinforcement
 * learning. They are the measured recipe of docs/; change one and the claim has to be measured again.
 */
import { crossChecks, MortiseError, RunConfig } from "@mortise/contracts";
import { mergeSets, parseStrict } from "@mortise/kernel";
import type { DecoderConfig } from "@mortise/policy";

export interface QuickstartOptions {
  readonly runId: string;
  readonly seed: number;
  /** Optimiser steps of reinforcement learning. */
  readonly steps: number;
  /** Held-out attempts of each evaluation. */
  readonly evalAttempts: number;
  /** Add a run that spends the same time on more supervised fine-tuning. */
  readonly control: boolean;
  /** `key=value` departures from the recipe, as the run file names the keys. The claims of docs/ hold without any. */
  readonly sets: readonly string[];
}

export const DEFAULT_STEPS = 16;
export const DEFAULT_EVAL_ATTEMPTS = 256;
export const TRAIN_TASKS = 768;
export const HELD_OUT_TASKS = 128;
export const REVALIDATED_TASKS = 16;
/** Each batch is sampled one version before it is used. */
const STALENESS_BOUND = 1;

export const DEMONSTRATIONS = { count: 2_000, wrongShare: 0.6, systematicShare: 0.7 } as const;
/** Demonstrations the tokenizer is trained on. */
export const TOKENIZER_SAMPLE = 1_200;
export const TOKENIZER_MERGES = 100;

/** About 160,000 parameters: small enough to sample and train on one core. */
export function demoPolicyConfig(vocabSize: number): DecoderConfig {
  return {
    modelType: "qwen3",
    vocabSize,
    hiddenSize: 64,
    intermediateSize: 176,
    layers: 3,
    heads: 4,
    kvHeads: 2,
    headDim: 16,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 16,
    maxPositions: 256,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
  };
}

export interface RecipePlaces {
  readonly checkpoint: string;
  readonly demonstrations: string;
}

/**
 * The run file of a quick start: the recipe with the departures its options name.
 * @throws MORTISE_OPERATOR_USAGE, MORTISE_CONFIG_INVALID when a departure makes no valid run file.
 */
export function quickstartRun(options: QuickstartOptions, places: RecipePlaces): RunConfig {
  const run = parseStrict(RunConfig, mergeSets(recipe(options, places), options.sets), { source: "--set" });
  if (run.run.id !== options.runId || run.run.seed !== options.seed) {
    throw new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: "--set: run.id and run.seed are not set this way.",
      fix: "Use --seed; the id is made by the quick start.",
    });
  }
  const [problem] = crossChecks(run);
  if (problem === undefined) return run;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `--set: ${problem.field} ${problem.reason}.`,
    detail: { source: "--set", field: problem.field },
  });
}

function recipe(options: QuickstartOptions, places: RecipePlaces): RunInput {
  return {
    run: { id: options.runId, seed: options.seed },
    policy: { checkpoint: places.checkpoint },
    rollout: {
      harness: "mini",
      groupSize: 8,
      slots: 16,
      warm: 16,
      temperature: 1,
      maxTokensPerTurn: 24,
      maxTurns: 4,
      agentTimeoutMs: 60_000,
    },
    async: { maxStaleness: STALENESS_BOUND },
    trainer: {
      steps: options.steps,
      groupsPerStep: 16,
      algorithm: "grpo",
      aggregation: "token-mean",
      clipLow: 0.2,
      clipHigh: 0.28,
      advantageEps: 1e-4,
      epochs: 2,
      miniBatches: 1,
      optimiser: {
        learningRate: 5e-4,
        // A run cut to a few steps has fewer updates than the recipe warms up over.
        warmupUpdates: Math.min(5, options.steps * 2),
        beta1: 0.9,
        beta2: 0.99,
        weightDecay: 0,
      },
    },
    warmStart: { demonstrations: places.demonstrations, steps: 170, batchSize: 64, promptWeight: 0.5 },
    evaluation: { attempts: options.evalAttempts },
  };
}

/**
 * The control: the same start and demonstrations, and for `extraSeconds` more supervised fine-tuning in place of
 * reinforcement learning. It is evaluated once, as "before", because it never leaves version 0.
 */
export function controlRun(run: RunConfig, controlId: string, extraSeconds: number): RunConfig {
  return {
    ...run,
    run: { ...run.run, id: controlId },
    trainer: { ...run.trainer, steps: 0, optimiser: { ...run.trainer.optimiser, warmupUpdates: 0 } },
    ...(run.warmStart === undefined ? {} : { warmStart: { ...run.warmStart, extraSeconds } }),
    evaluation: { ...run.evaluation, before: true, after: false },
  };
}

/** What a run file may say: every table of the configuration, only the keys that differ from its defaults. */
type Given<K extends keyof RunConfig> = Partial<NonNullable<RunConfig[K]>>;
interface RunInput {
  readonly run: Pick<RunConfig["run"], "id" | "seed">;
  readonly policy: Given<"policy">;
  readonly rollout: Given<"rollout">;
  readonly async: Given<"async">;
  readonly trainer: Omit<Given<"trainer">, "optimiser"> & {
    readonly optimiser: Partial<RunConfig["trainer"]["optimiser"]>;
  };
  readonly warmStart: Given<"warmStart">;
  readonly evaluation: Given<"evaluation">;
}
