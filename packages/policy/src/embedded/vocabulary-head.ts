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

/** What `backward` gets, aligned with the predictions, and where its results go. */
export interface HeadGradients {
  readonly dLogp: Float32Array;
  readonly dEntropy: Float32Array;
  /** Address of [rows, hidden]. */
  readonly dHidden: number;
  /** Address of the gradient block. */
  readonly gradients: number;
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
  #held: HeldLogits | undefined;

  constructor(arena: Arena, network: Network, temperature: number) {
    this.#arena = arena;
    this.#network = network;
    this.#inverseTemperature = 1 / temperature;
    this.#chunkRows = Math.max(16, Math.floor(LOGITS_FLOATS / network.head.outputStride));
  }

  /**
   * @param hidden [rows, hidden] after the final norm
   * @param hold keep the logits for `backward` in the current arena scope, when they fit in one chunk
   */
  score(hidden: number, predictions: readonly Prediction[], hold: boolean): TokenScores {
    const logp = new Float32Array(predictions.length);
    const entropy = new Float32Array(predictions.length);
    if (hold && predictions.length <= this.#chunkRows) {
      this.#held = this.#scoreChunk(hidden, predictions, logp, entropy, 0);
      return { logp, entropy };
    }
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
   * Adds the head's gradient and writes d loss / d hidden to `up.dHidden` (zeroed by the caller). Only tokens with a
   * gradient cost anything here; unless all have one and their logits were held, logits are computed again.
   */
  backward(hidden: number, predictions: readonly Prediction[], up: HeadGradients): void {
    const active = predictions.map((_, i) => i).filter((i) => up.dLogp[i] !== 0 || up.dEntropy[i] !== 0);
    if (this.#held !== undefined && active.length === predictions.length) {
      const held = this.#held;
      this.#arena.scoped(() => this.#backwardChunk(held, predictions, up));
      return;
    }
    for (let start = 0; start < active.length; start += this.#chunkRows) {
      const chosen = active.slice(start, start + this.#chunkRows);
      const chunk = chosen.map((i) => predictions[i]!);
      const pick = (from: Float32Array) => Float32Array.from(chosen, (i) => from[i]!);
      this.#arena.scoped(() => {
        const scores = new Float32Array(chunk.length);
        const held = this.#scoreChunk(hidden, chunk, scores, scores, 0);
        this.#backwardChunk(held, chunk, { ...up, dLogp: pick(up.dLogp), dEntropy: pick(up.dEntropy) });
      });
    }
  }

  /** Spends `held`: its logits become their gradient, its hidden rows theirs. */
  #backwardChunk(held: HeldLogits, chunk: readonly Prediction[], up: HeadGradients): void {
    const { head, widths } = this.#network;
    const { kernels } = this.#arena;
    const { hidden, logits, targets, entropy, lse } = held;
    const count = chunk.length;
    const stride = head.outputStride;
    const dLogp = this.#arena.allocateFloats(up.dLogp);
    const dEntropy = this.#arena.allocateFloats(up.dEntropy);
    kernels.logitsBackward(
      logits,
      stride,
      count,
      targets,
      this.#inverseTemperature,
      dLogp,
      dEntropy,
      entropy,
      lse,
    );
    accumulateWeightGradients(this.#arena, up.gradients, hidden, widths.hidden, count, [
      { dY: logits, ldY: stride, linear: head },
    ]);
    head.backwardInput(logits, stride, hidden, widths.hidden, count);
    const indices = this.#arena.allocateInts(chunk.map(({ row }) => row));
    kernels.embedBackward(up.dHidden, indices, count, widths.hidden, hidden);
  }
}
