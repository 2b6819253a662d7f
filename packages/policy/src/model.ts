/**
 * Owns the `PolicyModel` interface: what a trainer and a scorer may ask of a decoder, whatever computes it.
 * Does not own losses (packages/objectives), decoding (decode/) or the choice of a backend (create-model.ts).
 */
import type { DecoderConfig } from "./decoder-config.js";

/** One sequence of token ids. Rows of a call are independent of each other. */
export interface TrainingRow {
  readonly ids: Int32Array;
}

/** Per-row arrays, aligned with the ids of the row: entry t belongs to the prediction of `ids[t]`. */
export interface TokenGradients {
  /** d loss / d log-probability of `ids[t]`. Entry 0 is ignored: nothing predicts it. */
  readonly dLogp: readonly Float32Array[];
  /** d loss / d entropy of the distribution that predicted `ids[t]`. */
  readonly dEntropy?: readonly Float32Array[];
}

/** Hyperparameters of one AdamW update (decoupled decay first, bias correction, eps outside the root). */
export interface AdamWStep {
  readonly lr: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  /** Global norm above which gradients are scaled down; `Infinity` never clips. */
  readonly maxGradientNorm: number;
  /** Which tensors decay. `matrices` exempts norms and biases. Default `all`. */
  readonly decay?: "all" | "matrices";
}

export interface StepOutcome {
  /** Norm before clipping, summed in float64. */
  readonly gradientNorm: number;
  /** True when the norm was not finite: weights and moments are untouched. */
  readonly skipped: boolean;
}

export interface SamplingTransform {
  /** Divides the logits before the softmax; above 0. Default 1. */
  readonly temperature?: number;
}

/** Returns the loss gradient for per-token log-probabilities and entropies (nats). Entry 0 of each row is NaN. */
export type TokenLoss = (logp: readonly Float32Array[], entropy: readonly Float32Array[]) => TokenGradients;

export interface PolicyModel {
  readonly config: DecoderConfig;
  /** What computes, for people: `embedded (wasm simd)`, `tfjs (tensorflow, gpu)`, `tfjs (cpu)`. */
  readonly backend: string;
  /** Trainable numbers; a tied head counts once. */
  readonly parameterCount: number;

  /** Replaces all weights. Accepts F32, BF16 and F16. @throws MortiseError when a tensor is missing or has another shape. */
  loadWeights(safetensors: Uint8Array): void;
  /** All weights as F32 safetensors under Hugging Face names. Byte-identical for identical weights. */
  exportWeights(): Uint8Array;
  exportOptimizer(): Uint8Array;
  loadOptimizer(bytes: Uint8Array): void;
  resetOptimizer(): void;

  /** Log-probability of `ids[t]` given `ids[<t]`; entry 0 of each row is NaN. */
  logProbabilities(rows: readonly TrainingRow[], transform?: SamplingTransform): Float32Array[];
  /**
   * Forward over all rows, one call of `loss` with everything, backward. Adds to the gradients.
   * Tokens whose gradients are both 0 cost no vocabulary backward.
   */
  accumulate(rows: readonly TrainingRow[], loss: TokenLoss, transform?: SamplingTransform): void;
  zeroGradients(): void;
  gradientNorm(): number;
  /** A copy of the gradient of one tensor, row-major. */
  gradient(name: string): Float32Array;
  /** Clips, then updates every weight. Gradients are left as they are. */
  step(options: AdamWStep): StepOutcome;
  dispose(): void;
}

export interface ModelOptions {
  readonly backend: "embedded" | "tfjs" | "auto";
  /** Activations of at most this many tokens are kept at once; more are recomputed. Default 16,384. */
  readonly maxTokensPerMicroBatch?: number;
}
