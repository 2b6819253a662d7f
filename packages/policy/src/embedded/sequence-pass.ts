/**
 * Owns one pass over a batch of whole sequences: forward to per-token scores, and backward from their gradients.
 * A pass lives inside one arena scope; nothing of it survives.
 */
import type { TokenGradients, TrainingRow } from "../model.js";
import type { Arena } from "./arena.js";
import { allocateGradientBuffers, LayerBackward } from "./layer-backward.js";
import type { LayerActivations, Network } from "./network.js";
import { layOutRows, type RowBatch } from "./row-batch.js";
import { type Prediction, type TokenScores, VocabularyHead } from "./vocabulary-head.js";

/** Per-row arrays; entry 0 of each row is NaN. */
export interface SequenceScores {
  readonly logp: Float32Array[];
  readonly entropy: Float32Array[];
}

export class SequencePass {
  readonly #arena: Arena;
  readonly #network: Network;
  readonly #rows: readonly TrainingRow[];
  readonly #batch: RowBatch;
  readonly #head: VocabularyHead;
  readonly #predictions: readonly Prediction[];
  readonly #activations: LayerActivations[] = [];
  #stream = 0;
  #hidden = 0;
  #finalInverse = 0;

  /** Must be created inside `Arena.scoped`, after `RotaryTable.reserve` for the longest row. */
  constructor(arena: Arena, network: Network, rows: readonly TrainingRow[], temperature: number) {
    this.#arena = arena;
    this.#network = network;
    this.#rows = rows;
    this.#batch = layOutRows(arena, rows);
    this.#head = new VocabularyHead(arena, network, temperature);
    this.#predictions = this.#batch.sequences.flatMap(({ start, length }, i) =>
      Array.from({ length: length - 1 }, (_, t) => ({ row: start + t, target: rows[i]!.ids[t + 1]! })),
    );
  }

  /** @param keep hold every layer's activations for `backward`; otherwise one layer's are reused. */
  forward(keep: boolean): SequenceScores {
    const { kernels } = this.#arena;
    const { config, widths, layers, embedding, finalNorm } = this.#network;
    const { rows, ids, pageCount } = this.#batch;
    const stream = () => this.#arena.allocate(rows * widths.hidden);
    const pages = () => this.#arena.allocate(pageCount * widths.page);
    let input = stream();
    kernels.embed(embedding, ids, rows, widths.hidden, input);
    const shared = keep ? undefined : this.#network.allocateActivations(rows, input, pages());
    for (const layer of layers) {
      const at = shared ?? this.#network.allocateActivations(rows, input, pages());
      const output = keep ? stream() : input;
      this.#network.runLayer(layer, at, this.#batch, output);
      if (keep) this.#activations.push(at);
      input = output;
    }
    this.#stream = input;
    this.#hidden = stream();
    this.#finalInverse = this.#arena.allocate(rows);
    kernels.rmsNorm(
      input,
      widths.hidden,
      finalNorm,
      this.#hidden,
      widths.hidden,
      rows,
      1,
      widths.hidden,
      config.rmsNormEps,
      this.#finalInverse,
    );
    return this.#spread(this.#head.score(this.#hidden, this.#predictions, keep));
  }

  #spread(scores: TokenScores): SequenceScores {
    let next = 0;
    const take = (from: Float32Array, length: number, at: number) => {
      const out = new Float32Array(length).fill(Number.NaN, 0, 1);
      out.set(from.subarray(at, at + length - 1), 1);
      return out;
    };
    const logp: Float32Array[] = [];
    const entropy: Float32Array[] = [];
    for (const { ids } of this.#rows) {
      logp.push(take(scores.logp, ids.length, next));
      entropy.push(take(scores.entropy, ids.length, next));
      next += ids.length - 1;
    }
    return { logp, entropy };
  }

  /**
   * Adds to the gradient block. Needs `forward(true)` before it, once.
   * @param weights address of the weights block, in whose layout the gradient block is
   */
  backward(up: TokenGradients, gradients: number, weights: number): void {
    const { kernels } = this.#arena;
    const { widths, layers, finalNorm, embedding } = this.#network;
    const { rows, ids } = this.#batch;
    const { hidden } = widths;
    const flat = (from: readonly Float32Array[]) => concatenate(from.map((row) => row.subarray(1)));
    const dLogp = flat(up.dLogp);
    const dEntropy = up.dEntropy === undefined ? new Float32Array(dLogp.length) : flat(up.dEntropy);
    const buffers = allocateGradientBuffers(this.#arena, this.#network, rows);
    this.#arena.floats(buffers.normed, rows * hidden).fill(0);
    this.#head.backward(this.#hidden, this.#predictions, {
      dLogp,
      dEntropy,
      dHidden: buffers.normed,
      gradients,
    });
    const distance = gradients - weights;
    kernels.rmsNormBackward(
      this.#stream,
      hidden,
      finalNorm,
      this.#finalInverse,
      buffers.normed,
      hidden,
      buffers.stream,
      hidden,
      finalNorm + distance,
      rows,
      1,
      hidden,
      false,
    );
    const backward = new LayerBackward(this.#arena, this.#network, this.#batch, buffers, gradients, weights);
    for (let i = layers.length - 1; i >= 0; i--) backward.run(layers[i]!, this.#activations[i]!);
    kernels.embedBackward(embedding + distance, ids, rows, hidden, buffers.stream);
  }
}

function concatenate(parts: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let next = 0;
  for (const part of parts) {
    out.set(part, next);
    next += part.length;
  }
  return out;
}
