/**
 * Owns the embedded implementation of `PolicyModel`: blocks of weights, gradients and moments in one arena, and
 * the order of work of a call. The mathematics is in network.ts, layer-backward.ts, vocabulary-head.ts.
 */
import { readSafetensors, writeSafetensors } from "../checkpoint/safetensors.js";
import type { DecoderConfig } from "../decoder-config.js";
import type {
  AdamWStep,
  PolicyModel,
  SamplingTransform,
  StepOutcome,
  TokenGradients,
  TokenLoss,
  TrainingRow,
} from "../model.js";
import {
  adamWFactors,
  checkStep,
  clipScale,
  decayFactor,
  FIRST_MOMENT,
  parseUpdates,
  SECOND_MOMENT,
  UPDATES,
} from "../optimizer-state.js";
import { parameterCount } from "../parameter-table.js";
import { checkTemperature } from "../temperature.js";
import { Arena } from "./arena.js";
import { Network } from "./network.js";
import { ParameterStore } from "./parameter-store.js";
import { checkRows, splitRows } from "./row-batch.js";
import { SequencePass, type SequenceScores } from "./sequence-pass.js";

export const DEFAULT_MAX_TOKENS = 16_384;
/** Scoring keeps one layer only: smaller runs stay closer to the processor. */
const SCORING_TOKENS = 2048;

export class EmbeddedModel implements PolicyModel {
  readonly backend = "embedded (wasm simd)";
  readonly config: DecoderConfig;
  readonly parameterCount: number;
  readonly #maxTokens: number;
  readonly #arena: Arena;
  readonly #store: ParameterStore;
  readonly #network: Network;
  readonly #gradients: number;
  readonly #first: number;
  readonly #second: number;
  #updates = 0;

  constructor(config: DecoderConfig, maxTokensPerMicroBatch = DEFAULT_MAX_TOKENS) {
    this.config = config;
    this.parameterCount = parameterCount(config);
    this.#maxTokens = maxTokensPerMicroBatch;
    this.#arena = new Arena();
    this.#store = new ParameterStore(this.#arena, config);
    const block = () => this.#arena.allocateZeros(this.#store.blockFloats);
    [this.#gradients, this.#first, this.#second] = [block(), block(), block()];
    this.#network = new Network(this.#arena, this.#store, config, true);
  }

  loadWeights(safetensors: Uint8Array): void {
    this.#store.load(this.#store.weights, safetensors);
    this.#network.version.value++;
  }

  exportWeights(): Uint8Array {
    return this.#store.export();
  }

  exportOptimizer(): Uint8Array {
    const moments = [
      ...this.#store.tensors(this.#first, FIRST_MOMENT),
      ...this.#store.tensors(this.#second, SECOND_MOMENT),
    ];
    return writeSafetensors(moments, { [UPDATES]: String(this.#updates) });
  }

  loadOptimizer(bytes: Uint8Array): void {
    const updates = parseUpdates(readSafetensors(bytes).metadata);
    this.#store.load(this.#first, bytes, FIRST_MOMENT);
    this.#store.load(this.#second, bytes, SECOND_MOMENT);
    this.#updates = updates;
  }

  resetOptimizer(): void {
    this.#zero(this.#first);
    this.#zero(this.#second);
    this.#updates = 0;
  }

  logProbabilities(rows: readonly TrainingRow[], transform: SamplingTransform = {}): Float32Array[] {
    return this.#score(rows, checkTemperature(transform)).logp;
  }

  accumulate(rows: readonly TrainingRow[], loss: TokenLoss, transform: SamplingTransform = {}): void {
    if (rows.length === 0) return;
    const temperature = checkTemperature(transform);
    const runs = splitRows(rows, this.#maxTokens);
    if (runs.length === 1) {
      this.#pass(rows, temperature, (pass) => {
        const { logp, entropy } = pass.forward(true);
        pass.backward(loss(logp, entropy), this.#gradients, this.#store.weights);
      });
      return;
    }
    // Too many tokens to keep: score all first, then run each part again with its gradient.
    const { logp, entropy } = this.#score(rows, temperature);
    const up = loss(logp, entropy);
    let start = 0;
    for (const run of runs) {
      const part = sliceGradients(up, start, start + run.length);
      this.#pass(run, temperature, (pass) => {
        pass.forward(true);
        pass.backward(part, this.#gradients, this.#store.weights);
      });
      start += run.length;
    }
  }

  #score(rows: readonly TrainingRow[], temperature: number): SequenceScores {
    const all: SequenceScores = { logp: [], entropy: [] };
    for (const run of splitRows(rows, Math.min(SCORING_TOKENS, this.#maxTokens))) {
      this.#pass(run, temperature, (pass) => {
        const { logp, entropy } = pass.forward(false);
        all.logp.push(...logp);
        all.entropy.push(...entropy);
      });
    }
    return all;
  }

  #pass(rows: readonly TrainingRow[], temperature: number, work: (pass: SequencePass) => void): void {
    checkRows(rows, this.config.vocabSize);
    this.#network.rotary.reserve(Math.max(...rows.map(({ ids }) => ids.length)));
    this.#arena.scoped(() => work(new SequencePass(this.#arena, this.#network, rows, temperature)));
  }

  zeroGradients(): void {
    this.#zero(this.#gradients);
  }

  #zero(block: number): void {
    this.#arena.floats(block, this.#store.blockFloats).fill(0);
  }

  gradientNorm(): number {
    return Math.sqrt(this.#arena.kernels.sumSquares(this.#gradients, this.#store.blockFloats));
  }

  gradient(name: string): Float32Array {
    return this.#store.read(this.#gradients, this.#store.placement(name));
  }

  step(options: AdamWStep): StepOutcome {
    checkStep(options);
    const gradientNorm = this.gradientNorm();
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.#updates++;
    const { beta1, beta2, eps } = options;
    const { rate, rootCorrection } = adamWFactors(options, this.#updates);
    const clip = clipScale(gradientNorm, options.maxGradientNorm);
    for (const { spec, offset, count } of this.#store.placements) {
      const at = (block: number) => block + offset * 4;
      this.#arena.kernels.adamW(
        at(this.#store.weights),
        at(this.#gradients),
        at(this.#first),
        at(this.#second),
        count,
        clip,
        decayFactor(options, spec.role),
        beta1,
        1 - beta1,
        beta2,
        1 - beta2,
        rate,
        rootCorrection,
        eps,
      );
    }
    this.#network.version.value++;
    return { gradientNorm, skipped: false };
  }

  /** Nothing to do: the memory is the object's own and goes with it. */
  dispose(): void {}
}

function sliceGradients(up: TokenGradients, start: number, end: number): TokenGradients {
  const dLogp = up.dLogp.slice(start, end);
  return up.dEntropy === undefined ? { dLogp } : { dLogp, dEntropy: up.dEntropy.slice(start, end) };
}
