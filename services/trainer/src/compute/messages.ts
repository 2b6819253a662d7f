/**
 * Owns what crosses between the service and its compute thread. Plain data only: it is cloned or transferred.
 */
import type { OptimiserConfig } from "@mortise/contracts";
import type { Consistency, Objective } from "@mortise/objectives";

export interface ComputeSetup {
  /** Hugging Face directory: architecture, tokenizer, template and initial weights. */
  readonly checkpoint: string;
  readonly backend: "auto" | "embedded" | "tfjs";
  readonly microBatchTokens: number;
  /** Older versions whose weights are kept for scoring: η + 1. */
  readonly keptVersions: number;
}

export interface WarmStartTask {
  /** JSONL file. */
  readonly demonstrations: string;
  readonly steps: number;
  readonly batchSize: number;
  /** Loss weight of a context token; an assistant token weighs 1. */
  readonly promptWeight: number;
  readonly optimiser: OptimiserConfig;
  readonly finalLearningRateShare: number;
  /** Wall-clock seconds of further steps at the final learning rate. */
  readonly extraSeconds: number;
  readonly seed: number;
}

export interface WarmStartProgress {
  readonly step: number;
  readonly steps: number;
  readonly loss: number;
}

export interface LoadTask {
  readonly version: number;
  readonly weights: Uint8Array;
  readonly optimizer: Uint8Array;
  /** Older versions needed for scoring, and the reference policy of a KL term. */
  readonly older: readonly { readonly version: number; readonly weights: Uint8Array }[];
  readonly reference?: Uint8Array;
}

export interface StepRow {
  /** Index into the task's trials. */
  readonly trial: number;
  readonly ids: Int32Array;
  readonly mask: Uint8Array;
  /** Log-probabilities recorded at sampling; NaN = absent (C10). */
  readonly behaviour: Float32Array;
  /** Policy version of each sampled token, −1 for context. */
  readonly versions: Int32Array;
}

export interface StepTask {
  /** Policy version the step starts from; its tokens are the on-policy ones. */
  readonly version: number;
  readonly trials: readonly { readonly advantage: number; readonly trainedTokens: number }[];
  readonly rows: readonly StepRow[];
  readonly objective: Objective;
  readonly ratio: "behaviour" | "proximal";
  readonly temperature: number;
  readonly epochs: number;
  readonly miniBatches: number;
  readonly optimiser: OptimiserConfig;
  /** Updates made before this step, for warm-up. */
  readonly updates: number;
  readonly seed: number;
  /** Trials rescored by an independent implementation. */
  readonly independentTrials: number;
}

export interface StepResult {
  /** Means over the updates of the step; null without an update. */
  readonly loss: number | null;
  readonly gradientNorm: number | null;
  readonly policyLoss: number | null;
  readonly kl: number | null;
  readonly entropy: number | null;
  readonly clipFraction: number | null;
  readonly learningRate: number | null;
  readonly updates: number;
  /** Against the version that sampled each token, over the comparisons of both implementations. */
  readonly consistency: Consistency;
  /** Of these, the comparisons of the independent implementation. */
  readonly independent: Consistency;
  /** Against the weights the step starts from. */
  readonly drift: Consistency;
  /** Tokens in the loss without a recorded log-probability. */
  readonly missingLogProbabilities: number;
}

/** A policy version as bytes, with what it cost. */
export interface Produced {
  readonly weights: Uint8Array;
  readonly optimizer: Uint8Array;
}

export type Request =
  | { readonly kind: "warm-start"; readonly task: WarmStartTask }
  | { readonly kind: "initial" }
  | { readonly kind: "load"; readonly task: LoadTask }
  | { readonly kind: "step"; readonly task: StepTask };

export interface Answers {
  "warm-start": Produced;
  initial: Produced;
  load: null;
  step: Produced & { readonly result: StepResult };
}

export type FromWorker =
  | { readonly kind: "ready"; readonly backend: string; readonly parameters: number }
  | { readonly kind: "progress"; readonly progress: WarmStartProgress; readonly cpuMs: number }
  | { readonly kind: "independent-absent"; readonly reason: string }
  | { readonly kind: "answer"; readonly id: number; readonly value: unknown; readonly cpuMs: number }
  | { readonly kind: "failed"; readonly id: number; readonly error: PlainError; readonly cpuMs: number };

/** An error as data: classes do not survive the thread boundary. */
export interface PlainError {
  readonly code?: string;
  readonly fix?: string;
  /** Without the meaning of the code. */
  readonly message: string;
  readonly stack?: string;
}

export interface ToWorker {
  readonly id: number;
  readonly request: Request;
}
