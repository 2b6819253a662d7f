/**
 * Owns the decoder as TensorFlow.js operations: the second, independent statement of the mathematics that the
 * embedded engine is tested against. Uses only operations that have gradients in tfjs 4.22.
 */
import type { Tensor, Tensor2D, Tensor3D, Tensor4D } from "@tensorflow/tfjs";
import type { DecoderConfig } from "../decoder-config.js";
import { rotaryAngle } from "../embedded/rotary-table.js";
import { EMBEDDING, FINAL_NORM, HEAD, layerPrefix } from "../parameter-table.js";
import type { TensorFlow } from "./binding.js";

/** Looks up a weight by its Hugging Face name. */
export type Weights = (name: string) => Tensor;

/** Large enough to vanish in a softmax, small enough to stay finite. */
const MASKED = -1e9;

interface Shape {
  readonly batch: number;
  readonly length: number;
}

export class DecoderGraph {
  readonly #tf: TensorFlow;
  readonly #config: DecoderConfig;
  readonly #weights: Weights;

  constructor(tf: TensorFlow, config: DecoderConfig, weights: Weights) {
    this.#tf = tf;
    this.#config = config;
    this.#weights = weights;
  }

  /** @param ids [batch, length], padded at the end: causal rows never see the padding. @returns logits [batch * length, vocab] */
  logits(ids: Tensor2D): Tensor2D {
    const { layers, tieWordEmbeddings } = this.#config;
    const [batch, length] = ids.shape;
    const shape = { batch, length };
    let x = this.#tf.gather(this.#weights(EMBEDDING), ids.flatten().toInt()) as Tensor2D;
    for (let layer = 0; layer < layers; layer++) x = this.#layer(x, layerPrefix(layer), shape);
    const hidden = this.#norm(x, FINAL_NORM) as Tensor2D;
    return this.#project(hidden, tieWordEmbeddings ? EMBEDDING : HEAD);
  }

  #layer(x: Tensor2D, prefix: string, shape: Shape): Tensor2D {
    const normed = this.#norm(x, `${prefix}input_layernorm.weight`) as Tensor2D;
    const middle = x.add(this.#attention(normed, `${prefix}self_attn.`, shape)) as Tensor2D;
    const inner = this.#norm(middle, `${prefix}post_attention_layernorm.weight`) as Tensor2D;
    const gate = this.#project(inner, `${prefix}mlp.gate_proj.weight`);
    const activated = gate
      .mul(gate.sigmoid())
      .mul(this.#project(inner, `${prefix}mlp.up_proj.weight`)) as Tensor2D;
    return middle.add<Tensor2D>(this.#project(activated, `${prefix}mlp.down_proj.weight`));
  }

  #project(x: Tensor2D, weight: string, bias?: string): Tensor2D {
    const y: Tensor2D = this.#tf.matMul(x, this.#weights(weight) as Tensor2D, false, true);
    return bias === undefined ? y : y.add<Tensor2D>(this.#weights(bias));
  }

  /** RMSNorm over the last dimension. */
  #norm(x: Tensor, weight: string): Tensor {
    const scale = x.square().mean(-1, true).add(this.#config.rmsNormEps).rsqrt();
    return x.mul(scale).mul(this.#weights(weight));
  }

  /** [batch * length, heads * headDim] -> [batch, heads, length, headDim], normed and rotated for q and k. */
  #heads(
    x: Tensor2D,
    heads: number,
    { batch, length }: Shape,
    norm: string | undefined,
    rotate: boolean,
  ): Tensor4D {
    const { headDim } = this.#config;
    const split = x.reshape([batch, length, heads, headDim]);
    const normed = norm === undefined ? split : this.#norm(split, norm);
    const turned = normed.transpose([0, 2, 1, 3]) as Tensor4D;
    return rotate ? this.#rotate(turned, length) : turned;
  }

  #rotate(x: Tensor4D, length: number): Tensor4D {
    const { headDim, rotaryDim } = this.#config;
    const half = rotaryDim / 2;
    const table = (f: (angle: number) => number) =>
      this.#tf.tensor2d(
        Array.from({ length }, (_, p) =>
          Array.from({ length: half }, (_, i) => f(rotaryAngle(p, i, this.#config))),
        ),
      );
    const [cos, sin] = [table(Math.cos), table(Math.sin)];
    const [low, high, rest] = this.#tf.split(x, [half, half, headDim - rotaryDim], 3) as [
      Tensor4D,
      Tensor4D,
      Tensor4D,
    ];
    const turned = [low.mul(cos).sub(high.mul(sin)), high.mul(cos).add(low.mul(sin))];
    return this.#tf.concat(rotaryDim === headDim ? turned : [...turned, rest], 3) as Tensor4D;
  }

  #attention(x: Tensor2D, prefix: string, shape: Shape): Tensor2D {
    const { heads, kvHeads, headDim, qkvBias, qkNorm } = this.#config;
    const { batch, length } = shape;
    const group = heads / kvHeads;
    const project = (name: string) =>
      this.#project(x, `${prefix}${name}_proj.weight`, qkvBias ? `${prefix}${name}_proj.bias` : undefined);
    const normOf = (name: string) => (qkNorm ? `${prefix}${name}_norm.weight` : undefined);
    const q = this.#heads(project("q"), heads, shape, normOf("q"), true);
    const k = this.#heads(project("k"), kvHeads, shape, normOf("k"), true);
    const v = this.#heads(project("v"), kvHeads, shape, undefined, false);
    // The query heads of a group become rows of their kv head: no repeat of k and v is needed.
    const rows = q.reshape([batch * kvHeads, group * length, headDim]) as Tensor3D;
    const flat = (y: Tensor4D) => y.reshape([batch * kvHeads, length, headDim]) as Tensor3D;
    const scores = this.#tf.matMul(rows, flat(k), false, true).mul(headDim ** -0.5);
    const weights = this.#tf.softmax(scores.add(this.#causalMask(length, group))) as Tensor3D;
    const mixed = this.#tf.matMul(weights, flat(v)).reshape([batch, heads, length, headDim]);
    const joined = mixed.transpose([0, 2, 1, 3]).reshape([batch * length, heads * headDim]) as Tensor2D;
    return this.#project(joined, `${prefix}o_proj.weight`);
  }

  /** [group * length, length]: 0 where the key is not later than the query. */
  #causalMask(length: number, group: number): Tensor2D {
    const mask = new Float32Array(group * length * length);
    for (let row = 0; row < group * length; row++) {
      mask.fill(MASKED, row * length + (row % length) + 1, (row + 1) * length);
    }
    return this.#tf.tensor2d(mask, [group * length, length]);
  }
}
