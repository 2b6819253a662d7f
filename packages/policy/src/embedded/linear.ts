/**
 * Owns a projection y = x W^T: the weight, its packed copies, its products. The copies are remade lazily after the
 * weights changed; `Weights.version` says when.
 */
import type { Arena } from "./arena.js";
import type { ParameterStore } from "./parameter-store.js";

/** Tokens whose products are summed in one go into a weight gradient: what stays in the second-level cache. */
const CHUNK_TOKENS = 128;

const roundUp = (value: number, to: number) => Math.ceil(value / to) * to;

/** Counts changes of the weights. */
export interface WeightsVersion {
  value: number;
}

/** One product of a weight gradient: grad[n, in] += dY^T X. */
export interface GradientTarget {
  readonly dY: number;
  readonly ldY: number;
  readonly linear: Linear;
}

export class Linear {
  /** Rows and columns of W. */
  readonly outputs: number;
  readonly inputs: number;
  /** Leading dimension that a full output matrix of this projection needs. */
  readonly outputStride: number;
  readonly #arena: Arena;
  readonly #weight: number;
  readonly #weightOffset: number;
  readonly #version: WeightsVersion;
  readonly #forwardPack: number;
  #forwardVersion = -1;
  #backwardPack = 0;
  #backwardVersion = -1;

  constructor(
    arena: Arena,
    store: ParameterStore,
    name: string,
    version: WeightsVersion,
    trainable: boolean,
  ) {
    const placement = store.placement(name);
    [this.outputs, this.inputs] = placement.spec.shape as [number, number];
    this.outputStride = roundUp(this.outputs, 8);
    this.#arena = arena;
    this.#weight = store.address(name);
    this.#weightOffset = placement.offset * 4;
    this.#version = version;
    this.#forwardPack = arena.allocate(this.outputStride * this.inputs);
    if (trainable) this.#backwardPack = arena.allocate(this.outputStride * roundUp(this.inputs, 8));
  }

  /** Y[rows, outputs] = X W^T, or += when `accumulate`. Columns up to outputStride are written when ldY allows it. */
  forward(x: number, ldX: number, y: number, ldY: number, rows: number, accumulate = false): void {
    const { kernels } = this.#arena;
    if (this.#forwardVersion !== this.#version.value) {
      kernels.packColumns(this.#weight, this.outputs, this.inputs, this.#forwardPack);
      this.#forwardVersion = this.#version.value;
    }
    const columns = Math.min(this.outputStride, ldY);
    kernels.gemm(
      x,
      ldX,
      this.#forwardPack,
      y,
      ldY,
      rows,
      this.outputs % 4 === 0 ? this.outputs : columns,
      this.inputs,
      accumulate,
    );
  }

  /** dX[rows, inputs] = dY W, or +=. Padding columns of dY must be 0 when outputs is not a multiple of 4. */
  backwardInput(dY: number, ldY: number, dX: number, ldX: number, rows: number, accumulate = false): void {
    const { kernels } = this.#arena;
    const summed = roundUp(this.outputs, 4);
    if (this.#backwardVersion !== this.#version.value) {
      kernels.packRows(this.#weight, this.inputs, this.outputs, this.inputs, summed, this.#backwardPack);
      this.#backwardVersion = this.#version.value;
    }
    kernels.gemm(dY, ldY, this.#backwardPack, dX, ldX, rows, this.inputs, summed, accumulate);
  }

  /** Address of this weight's gradient in a gradient block. */
  gradient(block: number): number {
    return block + this.#weightOffset;
  }
}

/**
 * Adds dY^T X to the gradient of each target; all share the input X[rows, inputs]. Tokens are summed upwards in
 * chunks, so the order of sums depends on nothing but the order of the rows.
 */
export function accumulateWeightGradients(
  arena: Arena,
  gradients: number,
  x: number,
  inputs: number,
  rows: number,
  targets: readonly GradientTarget[],
): void {
  const { kernels } = arena;
  arena.scoped(() => {
    const widest = Math.max(...targets.map(({ linear }) => linear.outputStride));
    const packed = arena.allocate(CHUNK_TOKENS * roundUp(inputs, 8));
    const transposed = arena.allocate(CHUNK_TOKENS * widest);
    for (let start = 0; start < rows; start += CHUNK_TOKENS) {
      const count = Math.min(CHUNK_TOKENS, rows - start);
      const padded = roundUp(count, 4);
      kernels.packRows(x + start * inputs * 4, inputs, count, inputs, padded, packed);
      for (const { dY, ldY, linear } of targets) {
        kernels.transpose(dY + start * ldY * 4, ldY, count, roundUp(linear.outputs, 4), transposed, padded);
        kernels.gemm(
          transposed,
          padded,
          packed,
          linear.gradient(gradients),
          inputs,
          linear.outputs,
          inputs,
          padded,
          true,
        );
      }
    }
  });
}
