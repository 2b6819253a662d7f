/**
 * Owns asking a policy whether a trial resolved its task, and teaching it to answer: an outcome reward model as SWE-Gym
 * trains one (Pan et al. 2024). The score is what the two answers leave of each other,
 *
 *   p = e^y / (e^y + e^n),   y, n = log-probability of YES, NO behind the prompt, the sum over its tokens
 *
 * and the loss is of the right answer's tokens: of no token of the prompt, and of nothing behind the answer. SWE-Gym's own
 * code takes the mean over tokens; that is the same for answers of one token, and no probability for longer ones.
 */
import { MortiseError, type OptimiserConfig } from "@mortise/contracts";
import { yesProbability } from "@mortise/objectives";
import type { PolicyModel } from "@mortise/policy";
import { type DemonstrationRows, warmStart } from "@mortise/trainer";
import type { EncodedPrompt, PromptEncoder } from "./prompt-encoder.js";

/** Prompts scored in one call, each under both answers. */
const SCORED_AT_ONCE = 16;
/** The decay is SWE-Gym's, the moments those of a warm start. */
const ADAMW = { beta1: 0.9, beta2: 0.95, eps: 1e-8, weightDecay: 0.01, maxGradientNorm: 1 } as const;
const WARMUP_SHARE = 0.1;

export interface Score {
  /** In [0, 1]. */
  readonly pYes: number;
  readonly logYes: number;
  readonly logNo: number;
}

export interface Example {
  readonly prompt: EncodedPrompt;
  readonly isResolved: boolean;
}

export interface Lesson {
  readonly epochs: number;
  readonly batchSize: number;
  readonly learningRate: number;
  readonly seed: number;
}

export interface Progress {
  readonly step: number;
  readonly steps: number;
  /** Of one batch: the mean negative log-probability of its answers' tokens. */
  readonly loss: number;
}

export class Judge {
  readonly model: PolicyModel;
  private readonly encoder: PromptEncoder;

  constructor(model: PolicyModel, encoder: PromptEncoder) {
    this.model = model;
    this.encoder = encoder;
  }

  /** Deterministic in the seed. @returns the last step's progress */
  learn(examples: readonly Example[], lesson: Lesson, onProgress: (progress: Progress) => void): Progress {
    const steps = Math.ceil((examples.length * lesson.epochs) / lesson.batchSize);
    const optimiser: OptimiserConfig = {
      ...ADAMW,
      learningRate: lesson.learningRate,
      warmupUpdates: Math.ceil(WARMUP_SHARE * steps),
    };
    const { batchSize, seed } = lesson;
    let last: Progress = { step: 0, steps, loss: Number.NaN };
    this.model.resetOptimizer();
    warmStart(
      this.model,
      examples.map((example) => this.rowOf(example)),
      { steps, batchSize, optimiser, finalLearningRateShare: 0, extraSeconds: 0, seed },
      (progress) => {
        last = progress;
        onProgress(progress);
      },
    );
    return last;
  }

  /** In the order of the prompts. @throws MortiseError for log-probabilities that are no numbers */
  scores(prompts: readonly EncodedPrompt[]): Score[] {
    const scores: Score[] = [];
    for (let from = 0; from < prompts.length; from += SCORED_AT_ONCE) {
      const some = prompts.slice(from, from + SCORED_AT_ONCE);
      const answered = (answer: Int32Array) =>
        some.map(({ ids }) => ({ ids: Int32Array.from([...ids, ...answer]) }));
      const { yes, no } = this.encoder;
      const columns = this.model.logProbabilities([...answered(yes), ...answered(no)]);
      for (const [at, { ids }] of some.entries())
        scores.push(
          scoreOf(sumFrom(columns[at]!, ids.length), sumFrom(columns[some.length + at]!, ids.length)),
        );
    }
    return scores;
  }

  private rowOf({ prompt, isResolved }: Example): DemonstrationRows {
    const answer = isResolved ? this.encoder.yes : this.encoder.no;
    const ids = Int32Array.from([...prompt.ids, ...answer]);
    const weights = new Float32Array(ids.length).fill(1, prompt.ids.length);
    return [{ ids, weights }];
  }
}

function sumFrom(column: Float32Array, from: number): number {
  return column.subarray(from).reduce((sum, value) => sum + value, 0);
}

function scoreOf(logYes: number, logNo: number): Score {
  const pYes = yesProbability(logYes, logNo);
  if (Number.isFinite(logYes) && Number.isFinite(logNo)) return { pYes, logYes, logNo };
  throw new MortiseError({
    code: "MORTISE_TRAINER_NON_FINITE",
    message: `The log-probabilities of the answers are ${logYes} and ${logNo}.`,
    fix: "Train again with a lower --learning-rate.",
    detail: { field: "--learning-rate" },
  });
}
