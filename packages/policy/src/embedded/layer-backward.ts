/** Owns the backward pass of one decoder layer. The forward pass it mirrors is Network.runLayer. */
import type { Arena } from "./arena.js";
import { accumulateWeightGradients } from "./linear.js";
import { type Layer, type LayerActivations, type Network, PAGE_TOKENS } from "./network.js";
import type { RowBatch } from "./row-batch.js";

/** Gradient buffers shared by all layers, [rows, …] each. */
export interface GradientBuffers {
  /** The residual stream: gradient of a layer's output on entry, of its input on return. */
  readonly stream: number;
  readonly normed: number;
  readonly qkv: number;
  readonly attended: number;
  readonly activated: number;
}

export function allocateGradientBuffers(arena: Arena, network: Network, rows: number): GradientBuffers {
  const { hidden, q, qkv, ff } = network.widths;
  return {
    stream: arena.allocateZeros(rows * hidden),
    normed: arena.allocate(rows * hidden),
    qkv: arena.allocate(rows * qkv),
    attended: arena.allocate(rows * q),
    activated: arena.allocate(rows * ff),
  };
}

export class LayerBackward {
  readonly #arena: Arena;
  readonly #network: Network;
  readonly #batch: RowBatch;
  readonly #buffers: GradientBuffers;
  /** Gradient block, and its distance in bytes from the weights block. */
  readonly #gradients: number;
  readonly #distance: number;

  constructor(
    arena: Arena,
    network: Network,
    batch: RowBatch,
    buffers: GradientBuffers,
    gradients: number,
    weights: number,
  ) {
    this.#arena = arena;
    this.#network = network;
    this.#batch = batch;
    this.#buffers = buffers;
    this.#gradients = gradients;
    this.#distance = gradients - weights;
  }

  /** Turns the stream's gradient from output to input of the layer. `at.gateUp` is overwritten. */
  run(layer: Layer, at: LayerActivations): void {
    this.#feedForward(layer, at);
    this.#attention(layer, at);
    this.#projections(layer, at);
  }

  #feedForward(layer: Layer, at: LayerActivations): void {
    const { kernels } = this.#arena;
    const { hidden, ff } = this.#network.widths;
    const { rows } = this.#batch;
    const { stream, activated, normed } = this.#buffers;
    this.#weightGradients(at.activated, ff, [{ dY: stream, ldY: hidden, linear: layer.down }]);
    layer.down.backwardInput(stream, hidden, activated, ff, rows);
    kernels.swiGluBackward(at.gateUp, activated, rows, ff);
    const up = at.gateUp + ff * 4;
    this.#weightGradients(at.middleNormed, hidden, [
      { dY: at.gateUp, ldY: 2 * ff, linear: layer.gate },
      { dY: up, ldY: 2 * ff, linear: layer.up },
    ]);
    layer.gate.backwardInput(at.gateUp, 2 * ff, normed, hidden, rows);
    layer.up.backwardInput(up, 2 * ff, normed, hidden, rows, true);
    this.#normIntoStream(at.middle, layer.postNorm, at.middleInverse);
  }

  #attention(layer: Layer, at: LayerActivations): void {
    const { kernels } = this.#arena;
    const { heads, kvHeads, headDim } = this.#network.config;
    const { hidden, q, qkv } = this.#network.widths;
    const { rows, sequences, maxCount } = this.#batch;
    const buffers = this.#buffers;
    this.#weightGradients(at.attended, q, [{ dY: buffers.stream, ldY: hidden, linear: layer.o }]);
    layer.o.backwardInput(buffers.stream, hidden, buffers.attended, q, rows);
    this.#arena.floats(buffers.qkv, rows * qkv).fill(0);
    this.#arena.scoped(() => {
      const scratch = this.#arena.allocate((4 + headDim) * Math.ceil(maxCount / PAGE_TOKENS) * PAGE_TOKENS);
      for (const { start, length, table } of sequences) {
        const wide = start * qkv * 4;
        const narrow = start * q * 4;
        kernels.attendBackward(
          at.qkv + wide,
          buffers.qkv + wide,
          qkv,
          at.attended + narrow,
          buffers.attended + narrow,
          q,
          length,
          heads,
          kvHeads,
          headDim,
          headDim ** -0.5,
          at.pages,
          table,
          at.statistics + start * heads * 8,
          scratch,
        );
      }
    });
  }

  #projections(layer: Layer, at: LayerActivations): void {
    const { kernels } = this.#arena;
    const { heads, kvHeads, headDim, rotaryDim } = this.#network.config;
    const { hidden, q, kv, qkv } = this.#network.widths;
    const { rows, positions } = this.#batch;
    const { normed, qkv: dQ } = this.#buffers;
    const dK = dQ + q * 4;
    const dV = dK + kv * 4;
    const { cosines, sines } = this.#network.rotary;
    kernels.rotate(dQ, qkv, positions, cosines, sines, rows, heads + kvHeads, headDim, rotaryDim, -1);
    if (this.#network.config.qkNorm) {
      this.#headNorm(at.rawQk, layer.qNorm, at.qInverse, dQ, heads);
      this.#headNorm(at.rawQk + q * 4, layer.kNorm, at.kInverse, dK, kvHeads);
    }
    if (layer.biases !== undefined) {
      kernels.addColumnSums(dQ, qkv, rows, q, layer.biases[0] + this.#distance);
      kernels.addColumnSums(dK, qkv, rows, kv, layer.biases[1] + this.#distance);
      kernels.addColumnSums(dV, qkv, rows, kv, layer.biases[2] + this.#distance);
    }
    this.#weightGradients(at.normed, hidden, [
      { dY: dQ, ldY: qkv, linear: layer.q },
      { dY: dK, ldY: qkv, linear: layer.k },
      { dY: dV, ldY: qkv, linear: layer.v },
    ]);
    layer.q.backwardInput(dQ, qkv, normed, hidden, rows);
    layer.k.backwardInput(dK, qkv, normed, hidden, rows, true);
    layer.v.backwardInput(dV, qkv, normed, hidden, rows, true);
    this.#normIntoStream(at.input, layer.inputNorm, at.inputInverse);
  }

  /** The norm over each head of q or k: d is turned from its output's gradient to its input's, in place. */
  #headNorm(raw: number, weight: number, inverse: number, d: number, heads: number): void {
    const { q, kv, qkv } = this.#network.widths;
    const { headDim } = this.#network.config;
    const { rows } = this.#batch;
    const dWeight = weight + this.#distance;
    const ld = q + kv;
    this.#arena.kernels.rmsNormBackward(
      raw,
      ld,
      weight,
      inverse,
      d,
      qkv,
      d,
      qkv,
      dWeight,
      rows,
      heads,
      headDim,
      false,
    );
  }

  #weightGradients(
    x: number,
    inputs: number,
    targets: Parameters<typeof accumulateWeightGradients>[5],
  ): void {
    accumulateWeightGradients(this.#arena, this.#gradients, x, inputs, this.#batch.rows, targets);
  }

  /** The residual branch: the norm's gradient is added to the stream's own. */
  #normIntoStream(x: number, weight: number, inverse: number): void {
    const { hidden } = this.#network.widths;
    const { stream, normed } = this.#buffers;
    this.#arena.kernels.rmsNormBackward(
      x,
      hidden,
      weight,
      inverse,
      normed,
      hidden,
      stream,
      hidden,
      weight + this.#distance,
      this.#batch.rows,
      1,
      hidden,
      true,
    );
  }
}
