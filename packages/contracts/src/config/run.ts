/**
 * Owns the run configuration: what one run does, from task sampling to the optimiser. Stored with the run.
 * Does not own deployment facts (see site.ts). Unknown keys are refused.
 */
import { z } from "zod";
import { EngineConfig } from "./engine.js";
import {
  AgentNetwork,
  EvaluationProtocol,
  Instruction,
  Rendering,
  SandboxLimits,
  ShownTests,
} from "./protocol.js";

const id = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
const probability = z.number().min(0).max(1);
/** What a timer takes; with more it would be over at once. */
const MAX_TIMER_MS = 2_147_483_647;
const ms = z.int().min(1).max(MAX_TIMER_MS);

const Optimiser = z.strictObject({
  learningRate: z.number().positive().describe("Step size of AdamW."),
  warmupUpdates: z
    .int()
    .min(0)
    .describe("Updates over which the learning rate rises linearly, counted from 1."),
  beta1: probability.describe("Decay of the first moment."),
  beta2: probability.describe("Decay of the second moment."),
  eps: z.number().positive().default(1e-8).describe("Added outside the root of the second moment."),
  weightDecay: z.number().min(0).describe("Decoupled weight decay; norms and biases are exempt."),
  maxGradientNorm: z
    .number()
    .positive()
    .default(1)
    .describe("Global gradient norm above which gradients are scaled down."),
});

const absolutePath = z.string().regex(/^\/[^,:\\]*[^,:\\/]$/, "must be an absolute path without , : \\");
const factor = z.number().positive().max(100).default(1);

const Multipliers = z.strictObject({
  cpus: factor.describe("Of the CPUs a task asks for; the site's limit holds."),
  memory: factor.describe("Of the memory a task asks for; the site's limit holds."),
  setup: factor.describe("Of setupTimeoutMs."),
  agent: factor.describe("Of the task's own agent timeout, or agentTimeoutMs if that is lower."),
  verify: factor.describe("Of the task's own verifier timeout, or verifyTimeoutMs if that is lower."),
});

export const RunConfig = z.strictObject({
  run: z.strictObject({
    id: id.describe("Id of the run; the first token of every subject, durable and directory."),
    seed: z.int().min(0).default(1).describe("Seed of task sampling, initial weights and sampling noise."),
    mode: z
      .enum(["training", "evaluation"])
      .default("training")
      .describe(
        "evaluation: the checkpoint as it is, every attempt of evaluation.attempts to its verdict, and no trainer.",
      ),
  }),
  policy: z.strictObject({
    checkpoint: z.string().min(1).describe("Hugging Face directory of the initial policy."),
    backend: z.enum(["auto", "embedded", "tfjs"]).default("auto").describe("Implementation that trains."),
    name: z.string().default("policy").describe("Model name harnesses are told."),
    ...Rendering,
  }),
  engine: EngineConfig.prefault({ kind: "embedded" }),
  tasks: z
    .strictObject({
      train: z.string().default("train").describe("Split of the task index that is trained on."),
      evaluate: z.string().default("heldout").describe("Split of the task index that is evaluated on."),
      index: z
        .string()
        .min(1)
        .optional()
        .describe(
          "Directory whose index.json is drawn from instead of the site's; its tasks lie in the site's directory of tasks.",
        ),
    })
    .prefault({}),
  rollout: z
    .strictObject({
      harness: id.default("mini").describe("Harness, as the site file names it."),
      groupSize: z
        .int()
        .min(2)
        .default(8)
        .describe("Trials per group; below 2 a group-relative baseline is undefined."),
      slots: z.int().min(1).default(16).describe("Agents that may run at once."),
      warm: z.int().min(0).default(16).describe("Prepared sandboxes that may wait for a slot."),
      temperature: z.number().positive().default(1).describe("Sampling temperature the policy applies (C8)."),
      maxTokensPerTurn: z.int().min(1).default(256).describe("Tokens one turn may sample."),
      maxTurns: z.int().min(1).default(8).describe("Turns one trial may take."),
      maxTurnsWithoutCall: z
        .int()
        .min(0)
        .default(0)
        .describe(
          "Turns one thread may take in a row without a tool call; 0 = unlimited, for harnesses without tools.",
        ),
      maxPromptTokens: z.int().min(1).default(1_000_000).describe("Sum of context tokens a trial may send."),
      maxResponseTokens: z.int().min(1).default(100_000).describe("Sum of sampled tokens a trial may use."),
      agentTimeoutMs: ms.default(120_000).describe("Wall clock of the agent stage."),
      setupTimeoutMs: ms.default(60_000).describe("Wall clock of the setup stage."),
      warmTimeoutMs: ms.default(600_000).describe("How long a prepared sandbox may wait for a slot."),
      verifyTimeoutMs: ms.default(60_000).describe("Wall clock of one test run."),
      buildTimeoutMs: ms
        .default(600_000)
        .describe("How long a trial may wait while its task's Dockerfile is being built."),
      queueTimeoutMs: ms
        .default(120_000)
        .describe("How long a launch may wait at a sandbox-manager for its turn to start."),
      rateLimitTimeoutMs: ms
        .default(120_000)
        .describe("How long a setup may wait because a registry said to come again later."),
      cleanupTimeoutMs: ms
        .default(60_000)
        .describe("Wall clock of ending a sandbox, reading the change and reporting it."),
      multipliers: Multipliers.prefault({}),
      limits: z.strictObject(SandboxLimits).prefault({}),
      mounts: z
        .array(
          z.strictObject({
            name: z.string().min(1).describe("Name in sandbox.shared of the site file."),
            target: absolutePath.describe("Where it is mounted, read-only."),
          }),
        )
        .default([])
        .describe("Directories of the site mounted into every sandbox of the run."),
      scratch: z
        .array(
          z.strictObject({
            target: absolutePath.describe("Where it is."),
            bytes: z.int().min(4096).describe("Its size."),
          }),
        )
        .default([])
        .describe("Empty writable directories that do not count against the disk limit."),
      instruction: Instruction,
      network: AgentNetwork,
      shownTests: ShownTests,
      unproven: z
        .enum(["refuse", "allow"])
        .default("refuse")
        .describe(
          "Trials whose agent runs in a remote runtime, where closed egress and hidden history cannot be proved; refuse: such a harness is refused.",
        ),
      keep: z
        .enum(["never", "failed", "always"])
        .default("never")
        .describe("Which trials leave their sandbox to be looked into; failed: every ending but completed."),
      keepMs: ms.default(3_600_000).describe("How long a kept sandbox stays."),
      prewarm: z
        .int()
        .min(0)
        .max(256)
        .default(8)
        .describe("Next tasks that sandbox-managers are told of ahead, so that images are ready; 0 = none."),
      maxRetries: z
        .int()
        .min(0)
        .max(10)
        .default(2)
        .describe("New trials in the same place of a group after infrastructure failures."),
    })
    .prefault({}),
  async: z
    .strictObject({
      maxStaleness: z
        .int()
        .min(0)
        .default(1)
        .describe("Greatest staleness a trained trial may have, in steps. 0 = synchronous."),
      stragglers: z
        .enum(["wait", "drop"])
        .default("wait")
        .describe(
          "wait: groups that would overtake an older one past its bound are held back until it is complete. drop: they go first, and the older one's trials are excluded as stale.",
        ),
    })
    .prefault({}),
  termination: z
    .strictObject({
      tamper: z
        .enum(["exclude", "penalise"])
        .default("exclude")
        .describe("penalise: conclusive tampering counts as reward 0 in statistics and loss."),
    })
    .prefault({}),
  trainer: z
    .strictObject({
      steps: z.int().min(0).default(16).describe("Optimiser steps of the run."),
      groupsPerStep: z.int().min(1).default(16).describe("Groups of one batch."),
      refillDropped: z
        .boolean()
        .default(false)
        .describe("Whether dropped groups are replaced until the batch is full (dynamic sampling)."),
      algorithm: z
        .enum(["gspo", "grpo", "drgrpo", "rloo", "dapo", "cispo", "ppo", "rft"])
        .default("gspo")
        .describe("Advantage and policy loss."),
      aggregation: z
        .enum([
          "default",
          "token-mean",
          "seq-mean-token-mean",
          "seq-mean-token-sum",
          "seq-mean-token-sum-norm",
        ])
        .default("default")
        .describe("How token losses become one number; default is the algorithm's own."),
      clipLow: z.number().min(0).optional().describe("Lower clip distance; the algorithm's own when absent."),
      clipHigh: z
        .number()
        .min(0)
        .optional()
        .describe("Upper clip distance; the algorithm's own when absent."),
      ratio: z
        .enum(["behaviour", "proximal"])
        .default("behaviour")
        .describe(
          "Denominator of the ratio: recorded log-probabilities, or recomputed at step start with importance correction.",
        ),
      importanceCap: z
        .number()
        .positive()
        .default(2)
        .describe("Cap of the truncated importance weight in proximal mode."),
      advantageEps: z
        .number()
        .positive()
        .default(1e-6)
        .describe("Added to the standard deviation of a group."),
      klCoefficient: z
        .number()
        .min(0)
        .default(0)
        .describe("Weight of the KL term against the warm-started policy."),
      klEstimator: z.enum(["k1", "k2", "k3"]).default("k3").describe("Estimator of the KL term."),
      entropyCoefficient: z.number().min(0).default(0).describe("Weight of the entropy bonus."),
      epochs: z.int().min(1).default(1).describe("Passes over a batch."),
      miniBatches: z.int().min(1).default(1).describe("Optimiser updates per pass; a trial is never split."),
      microBatchTokens: z
        .int()
        .min(64)
        .default(16_384)
        .describe(
          "Tokens whose activations are kept at once; a larger batch is computed in parts, each twice.",
        ),
      independentTrials: z
        .int()
        .min(0)
        .default(4)
        .describe(
          "Trials of each step rescored by a second implementation, as far as about 1 CPU-second allows; 0 = off.",
        ),
      optimiser: Optimiser.prefault({
        learningRate: 1e-6,
        warmupUpdates: 0,
        beta1: 0.9,
        beta2: 0.999,
        weightDecay: 0.01,
      }),
      keepCheckpoints: z.int().min(1).default(2).describe("Newest checkpoints kept on disk."),
    })
    .prefault({}),
  warmStart: z
    .strictObject({
      demonstrations: z.string().min(1).describe('JSONL of demonstrations, one {"messages": …} a line.'),
      steps: z.int().min(0).default(170).describe("Supervised steps before version 0."),
      batchSize: z.int().min(1).default(64).describe("Demonstrations per supervised step."),
      promptWeight: z
        .number()
        .min(0)
        .default(0.5)
        .describe("Loss weight of context tokens; 1 is the weight of assistant tokens."),
      optimiser: Optimiser.prefault({
        learningRate: 5e-3,
        warmupUpdates: 10,
        beta1: 0.9,
        beta2: 0.95,
        weightDecay: 0.01,
      }),
      finalLearningRateShare: probability
        .default(0.1)
        .describe("Cosine decay ends at this share of the learning rate."),
      extraSeconds: z
        .number()
        .min(0)
        .default(0)
        .describe("Control runs: seconds of further supervised fine-tuning before version 0."),
    })
    .optional()
    .describe("Supervised fine-tuning before reinforcement learning."),
  evaluation: z
    .strictObject({
      attempts: z
        .int()
        .min(0)
        .default(0)
        .describe("Held-out trials per evaluation, spread evenly over the tasks; 0 turns evaluation off."),
      before: z.boolean().default(true).describe("Evaluate version 0."),
      after: z.boolean().default(true).describe("Evaluate the last version."),
      protocol: EvaluationProtocol.optional().describe(
        "What the run was made under, as `mortise eval` and `mortise infer` record it.",
      ),
    })
    .prefault({}),
});

export type RunConfig = z.infer<typeof RunConfig>;
export type OptimiserConfig = z.infer<typeof Optimiser>;

/** Checks that concern more than one field. Each returns the field and the reason, or nothing. */
export function crossChecks(config: RunConfig): { field: string; reason: string }[] {
  const found: { field: string; reason: string }[] = [];
  if (
    config.trainer.klCoefficient > 0 &&
    config.trainer.ratio === "behaviour" &&
    config.warmStart === undefined &&
    config.trainer.steps === 0
  )
    found.push({ field: "trainer.klCoefficient", reason: "a KL term needs training steps" });
  const isEvaluation = config.run.mode === "evaluation";
  if (isEvaluation && config.evaluation.attempts === 0)
    found.push({ field: "evaluation.attempts", reason: "is 0, and the run does nothing else" });
  if (isEvaluation && config.warmStart !== undefined)
    found.push({ field: "warmStart", reason: "changes weights, and run.mode is evaluation" });
  if (!isEvaluation && config.rollout.shownTests !== "none")
    found.push({ field: "rollout.shownTests", reason: "needs run.mode evaluation" });
  if (config.rollout.instruction.includes("{tests}") && config.rollout.shownTests === "none")
    found.push({ field: "rollout.instruction", reason: "names {tests}, and rollout.shownTests is none" });
  if (config.rollout.maxTokensPerTurn > config.rollout.maxResponseTokens)
    found.push({ field: "rollout.maxTokensPerTurn", reason: "is above rollout.maxResponseTokens" });
  if (
    config.trainer.optimiser.warmupUpdates >
      config.trainer.steps * config.trainer.epochs * config.trainer.miniBatches &&
    config.trainer.steps > 0
  )
    found.push({ field: "trainer.optimiser.warmupUpdates", reason: "is longer than the run has updates" });
  return found;
}
