/**
 * Owns the end of the model: final hidden rows -> log-probability and entropy of given targets, and back. Works on
 * a compact list of rows, in chunks, so that logits of a large vocabulary never exist for all tokens at once.
 */
import type { Arena } from "./arena.js";
import { accumulateWeightGradients } from "./linear.js";
import type { Network } from "./network.js";

/** Floats of logits held at once (64 MiB). */
const LOGITS_FLOATS = 16 * 1024 * 1024;

/** A row of the batch that predicts a token. */
export interface Prediction {
  readonly row: number;
  readonly target: number;
}

export interface TokenScores {
  /** Aligned with the predictions. */
  readonly logp: Float32Array;
  readonly entropy: Float32Array;
}

/** Logits that are still in the arena, scaled by the temperature. */
interface HeldLogits {
  readonly hidden: number;
  readonly logits: number;
  readonly targets: number;
  readonly entropy: number;
  readonly lse: number;
}

export class VocabularyHead {
  readonly #arena: Arena;
  readonly #network: Network;
  readonly #inverseTemperature: number;
  readonly #chunkRows: number;

  constructor(arena: Arena, network: Network, temperature: number) {
    this.#arena = arena;
    this.#network = network;
    this.#inverseTemperature = 1 / temperature;
    this.#chunkRows = Math.max(16, Math.floor(LOGITS_FLOATS / network.head.outputStride));
  }

  /** @param hidden [rows, hidden] after the final norm */
  score(hidden: number, predictions: readonly Prediction[]): TokenScores {
    const logp = new Float32Array(predictions.length);
    const entropy = new Float32Array(predictions.length);
    for (let start = 0; start < predictions.length; start += this.#chunkRows) {
      const chunk = predictions.slice(start, start + this.#chunkRows);
      this.#arena.scoped(() => this.#scoreChunk(hidden, chunk, logp, entropy, start));
    }
    return { logp, entropy };
  }

  #scoreChunk(
    hidden: number,
    chunk: readonly Prediction[],
    logp: Float32Array,
    entropy: Float32Array,
    start: number,
  ): HeldLogits {
    const { head, config, widths } = this.#network;
    const count = chunk.length;
    const compact = this.#gather(hidden, chunk);
    const logits = this.#arena.allocate(count * head.outputStride);
    const targets = this.#arena.allocateInts(chunk.map(({ target }) => target));
    const statistics = [0, 1, 2].map(() => this.#arena.allocate(count)) as [number, number, number];
    head.forward(compact, widths.hidden, logits, head.outputStride, count);
    this.#arena.kernels.tokenStatistics(
      logits,
      head.outputStride,
      config.vocabSize,
      count,
      targets,
      this.#inverseTemperature,
      ...statistics,
    );
    logp.set(this.#arena.floats(statistics[0], count), start);
    entropy.set(this.#arena.floats(statistics[1], count), start);
    return { hidden: compact, logits, targets, entropy: statistics[1], lse: statistics[2] };
  }

  /** Copies the rows of the predictions to a matrix without gaps. */
  #gather(hidden: number, predictions: readonly Prediction[]): number {
    const width = this.#network.widths.hidden;
    const compact = this.#arena.allocate(predictions.length * width);
    const indices = this.#arena.allocateInts(predictions.map(({ row }) => row));
    this.#arena.kernels.embed(hidden, indices, predictions.length, width, compact);
    return compact;
  }

  /**
   * Adds the head's gradient and writes d loss / d hidden to `dHidden` (zeroed by the caller). Logits are computed
   * again: only tokens with a gradient cost anything here.
   */
  backward(
    hidden: number,
    predictions: readonly Prediction[],
    dLogp: Float32Array,
    dEntropy: Float32Array,
    dHidden: number,
    gradients: number,
  ): void {
    const active = predictions.map((_, i) => i).filter((i) => dLogp[i] !== 0 || dEntropy[i] !== 0);
    for (let start = 0; start < active.length; start += this.#chunkRows) {
      const chunk = active.slice(start, start + this.#chunkRows);
      this.#arena.scoped(() =>
        this.#backwardChunk(
          hidden,
          chunk.map((i) => predictions[i]!),
          {
            dLogp: Float32Array.from(chunk, (i) => dLogp[i]!),
            dEntropy: Float32Array.from(chunk, (i) => dEntropy[i]!),
            dHidden,
            gradients,
          },
        ),
      );
    }
  }

  #backwardChunk(
    hidden: number,
    chunk: readonly Prediction[],
    up: { dLogp: Float32Array; dEntropy: Float32Array; dHidden: number; gradients: number },
  ): void {
    const { head, widths } = this.#network;
    const { kernels } = this.#arena;
    const count = chunk.length;
    const held = this.#scoreChunk(hidden, chunk, new Float32Array(count), new Float32Array(count), 0);
    const dLogp = this.#arena.allocateFloats(up.dLogp);
    const dEntropy = this.#arena.allocateFloats(up.dEntropy);
    const stride = head.outputStride;
    kernels.logitsBackward(
      held.logits,
      stride,
      count,
      held.targets,
      this.#inverseTemperature,
      dLogp,
      dEntropy,
      held.entropy,
      held.lse,
    );
    accumulateWeightGradients(this.#arena, up.gradients, held.hidden, widths.hidden, count, [
      { dY: held.logits, ldY: stride, linear: head },
    ]);
    // The compact hidden rows are spent; their place takes the gradient.
    head.backwardInput(held.logits, stride, held.hidden, widths.hidden, count);
    const indices = this.#arena.allocateInts(chunk.map(({ row }) => row));
    kernels.embedBackward(up.dHidden, indices, count, widths.hidden, held.hidden);
  }
}
