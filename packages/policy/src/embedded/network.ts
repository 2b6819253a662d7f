/**
 * Owns the forward pass of the decoder over a flat list of token rows. Training, scoring and decoding run exactly
 * this code; they differ in where activations go and in how keys and values are paged.
 */
import type { DecoderConfig } from "../decoder-config.js";
import { EMBEDDING, FINAL_NORM, HEAD, layerPrefix } from "../parameter-table.js";
import type { Arena } from "./arena.js";
import { Linear, type WeightsVersion } from "./linear.js";
import type { ParameterStore } from "./parameter-store.js";
import { RotaryTable } from "./rotary-table.js";

/** Positions per page of keys and values; the kernels are written for it. */
export const PAGE_TOKENS = 16;

export interface Layer {
  readonly inputNorm: number;
  readonly postNorm: number;
  readonly qNorm: number;
  readonly kNorm: number;
  readonly q: Linear;
  readonly k: Linear;
  readonly v: Linear;
  readonly o: Linear;
  readonly gate: Linear;
  readonly up: Linear;
  readonly down: Linear;
  /** Addresses of the q, k and v biases, or undefined. */
  readonly biases: readonly [number, number, number] | undefined;
}

/** Where each row sits: addresses of int32 arrays, one entry per row. */
export interface AttentionPlan {
  readonly rows: number;
  readonly ids: number;
  readonly positions: number;
  /** page * 16 + offset that the row's key and value are written to. */
  readonly slots: number;
  /** Address of the row's page table. */
  readonly tables: number;
  /** Positions the row sees, its own included. */
  readonly counts: number;
  readonly maxCount: number;
}

/** Activations of one layer, [rows, …] each; addresses. */
export interface LayerActivations {
  readonly input: number;
  readonly normed: number;
  readonly inputInverse: number;
  /** q and k before their norms (Qwen3 only). */
  readonly rawQk: number;
  readonly qInverse: number;
  readonly kInverse: number;
  /** [q | k | v] after norms and rotation. */
  readonly qkv: number;
  readonly statistics: number;
  readonly attended: number;
  readonly middle: number;
  readonly middleNormed: number;
  readonly middleInverse: number;
  readonly gateUp: number;
  readonly activated: number;
  /** Keys and values of this layer, in pages. */
  readonly pages: number;
}

export interface Widths {
  readonly hidden: number;
  readonly q: number;
  readonly kv: number;
  readonly qkv: number;
  readonly ff: number;
  /** Floats of one page of one layer. */
  readonly page: number;
}

export class Network {
  readonly config: DecoderConfig;
  readonly widths: Widths;
  readonly layers: readonly Layer[];
  readonly head: Linear;
  readonly embedding: number;
  readonly finalNorm: number;
  readonly rotary: RotaryTable;
  readonly version: WeightsVersion = { value: 0 };
  readonly #arena: Arena;

  constructor(arena: Arena, store: ParameterStore, config: DecoderConfig, trainable: boolean) {
    this.#arena = arena;
    this.config = config;
    const q = config.heads * config.headDim;
    const kv = config.kvHeads * config.headDim;
    this.widths = {
      hidden: config.hiddenSize,
      q,
      kv,
      qkv: q + 2 * kv,
      ff: config.intermediateSize,
      page: 2 * kv * PAGE_TOKENS,
    };
    const linear = (name: string) => new Linear(arena, store, name, this.version, trainable);
    this.layers = Array.from({ length: config.layers }, (_, i) =>
      placeLayer(store, config, layerPrefix(i), linear),
    );
    this.head = linear(HEAD);
    this.embedding = store.address(EMBEDDING);
    this.finalNorm = store.address(FINAL_NORM);
    this.rotary = new RotaryTable(arena, config);
  }

  /** Activations for `rows` rows; `pages` is the address of the layer's key and value pages. */
  allocateActivations(rows: number, input: number, pages: number): LayerActivations {
    const { hidden, q, kv, qkv, ff } = this.widths;
    const { heads, kvHeads, qkNorm } = this.config;
    const floats = (width: number) => this.#arena.allocate(rows * width);
    return {
      input,
      pages,
      normed: floats(hidden),
      inputInverse: floats(1),
      rawQk: qkNorm ? floats(q + kv) : 0,
      qInverse: qkNorm ? floats(heads) : 0,
      kInverse: qkNorm ? floats(kvHeads) : 0,
      qkv: floats(qkv),
      statistics: floats(2 * heads),
      attended: floats(q),
      middle: floats(hidden),
      middleNormed: floats(hidden),
      middleInverse: floats(1),
      gateUp: floats(2 * ff),
      activated: floats(ff),
    };
  }

  /** One decoder layer: reads `at.input`, writes the residual stream to `output` (may be the same address). */
  runLayer(layer: Layer, at: LayerActivations, plan: AttentionPlan, output: number): void {
    const { kernels } = this.#arena;
    const { rmsNormEps: eps } = this.config;
    const { hidden, q, ff } = this.widths;
    const { rows } = plan;
    kernels.rmsNorm(
      at.input,
      hidden,
      layer.inputNorm,
      at.normed,
      hidden,
      rows,
      1,
      hidden,
      eps,
      at.inputInverse,
    );
    this.#projectQkv(layer, at, plan);
    this.#attend(at, plan);
    this.#arena.copy(at.middle, at.input, rows * hidden);
    layer.o.forward(at.attended, q, at.middle, hidden, rows, true);
    kernels.rmsNorm(
      at.middle,
      hidden,
      layer.postNorm,
      at.middleNormed,
      hidden,
      rows,
      1,
      hidden,
      eps,
      at.middleInverse,
    );
    layer.gate.forward(at.middleNormed, hidden, at.gateUp, 2 * ff, rows);
    layer.up.forward(at.middleNormed, hidden, at.gateUp + ff * 4, 2 * ff, rows);
    kernels.swiGlu(at.gateUp, at.activated, rows, ff);
    this.#arena.copy(output, at.middle, rows * hidden);
    layer.down.forward(at.activated, ff, output, hidden, rows, true);
  }

  #projectQkv(layer: Layer, at: LayerActivations, { rows, positions }: AttentionPlan): void {
    const { kernels } = this.#arena;
    const { heads, kvHeads, headDim, rotaryDim, rmsNormEps: eps, qkNorm } = this.config;
    const { hidden, q, kv, qkv } = this.widths;
    const target = qkNorm ? at.rawQk : at.qkv;
    const ld = qkNorm ? q + kv : qkv;
    const k = at.qkv + q * 4;
    const v = k + kv * 4;
    layer.q.forward(at.normed, hidden, target, ld, rows);
    layer.k.forward(at.normed, hidden, target + q * 4, ld, rows);
    layer.v.forward(at.normed, hidden, v, qkv, rows);
    if (layer.biases !== undefined) {
      kernels.addBias(at.qkv, qkv, layer.biases[0], rows, q);
      kernels.addBias(k, qkv, layer.biases[1], rows, kv);
      kernels.addBias(v, qkv, layer.biases[2], rows, kv);
    }
    if (qkNorm) {
      kernels.rmsNorm(at.rawQk, ld, layer.qNorm, at.qkv, qkv, rows, heads, headDim, eps, at.qInverse);
      kernels.rmsNorm(at.rawQk + q * 4, ld, layer.kNorm, k, qkv, rows, kvHeads, headDim, eps, at.kInverse);
    }
    const { cosines, sines } = this.rotary;
    kernels.rotate(at.qkv, qkv, positions, cosines, sines, rows, heads + kvHeads, headDim, rotaryDim, 1);
  }

  #attend(at: LayerActivations, plan: AttentionPlan): void {
    const { kernels } = this.#arena;
    const { heads, kvHeads, headDim } = this.config;
    const { q, kv, qkv } = this.widths;
    const k = at.qkv + q * 4;
    kernels.storeKeyValue(k, k + kv * 4, qkv, plan.rows, kvHeads, headDim, at.pages, plan.slots);
    this.#arena.scoped(() => {
      const scores = this.#arena.allocate(Math.ceil(plan.maxCount / PAGE_TOKENS) * PAGE_TOKENS);
      kernels.attend(
        at.qkv,
        qkv,
        at.attended,
        q,
        plan.rows,
        heads,
        kvHeads,
        headDim,
        headDim ** -0.5,
        at.pages,
        plan.tables,
        plan.counts,
        scores,
        at.statistics,
      );
    });
  }
}

function placeLayer(
  store: ParameterStore,
  config: DecoderConfig,
  prefix: string,
  linear: (name: string) => Linear,
): Layer {
  const bias = (name: string) => store.address(`${prefix}self_attn.${name}_proj.bias`);
  return {
    inputNorm: store.address(`${prefix}input_layernorm.weight`),
    postNorm: store.address(`${prefix}post_attention_layernorm.weight`),
    qNorm: config.qkNorm ? store.address(`${prefix}self_attn.q_norm.weight`) : 0,
    kNorm: config.qkNorm ? store.address(`${prefix}self_attn.k_norm.weight`) : 0,
    q: linear(`${prefix}self_attn.q_proj.weight`),
    k: linear(`${prefix}self_attn.k_proj.weight`),
    v: linear(`${prefix}self_attn.v_proj.weight`),
    o: linear(`${prefix}self_attn.o_proj.weight`),
    gate: linear(`${prefix}mlp.gate_proj.weight`),
    up: linear(`${prefix}mlp.up_proj.weight`),
    down: linear(`${prefix}mlp.down_proj.weight`),
    biases: config.qkvBias ? [bias("q"), bias("k"), bias("v")] : undefined,
  };
}
