/**
 * Owns the list of a decoder's trainable tensors: Hugging Face names, shapes, order. The order is the order in
 * memory, in exports and in every gradient sum. Holds no numbers.
 */
import type { DecoderConfig } from "./decoder-config.js";

export interface ParameterSpec {
  readonly name: string;
  /** [out, in] for projections, [size] for norms and biases. */
  readonly shape: readonly number[];
  readonly role: "matrix" | "norm" | "bias";
}

export const EMBEDDING = "model.embed_tokens.weight";
export const FINAL_NORM = "model.norm.weight";
export const HEAD = "lm_head.weight";

export function layerPrefix(layer: number): string {
  return `model.layers.${layer}.`;
}

function layerParameters(config: DecoderConfig, layer: number): ParameterSpec[] {
  const { hiddenSize: d, intermediateSize: ff, headDim } = config;
  const q = config.heads * headDim;
  const kv = config.kvHeads * headDim;
  const specs: ParameterSpec[] = [];
  const add = (name: string, shape: number[], role: ParameterSpec["role"] = "matrix") =>
    specs.push({ name: layerPrefix(layer) + name, shape, role });
  add("input_layernorm.weight", [d], "norm");
  for (const [name, width] of [
    ["q", q],
    ["k", kv],
    ["v", kv],
  ] as const) {
    add(`self_attn.${name}_proj.weight`, [width, d]);
    if (config.qkvBias) add(`self_attn.${name}_proj.bias`, [width], "bias");
  }
  if (config.qkNorm) {
    add("self_attn.q_norm.weight", [headDim], "norm");
    add("self_attn.k_norm.weight", [headDim], "norm");
  }
  add("self_attn.o_proj.weight", [d, q]);
  add("post_attention_layernorm.weight", [d], "norm");
  add("mlp.gate_proj.weight", [ff, d]);
  add("mlp.up_proj.weight", [ff, d]);
  add("mlp.down_proj.weight", [d, ff]);
  return specs;
}

/** All trainable tensors. A tied head is not listed: it is the embedding. */
export function parameterTable(config: DecoderConfig): readonly ParameterSpec[] {
  const specs: ParameterSpec[] = [
    { name: EMBEDDING, shape: [config.vocabSize, config.hiddenSize], role: "matrix" },
  ];
  for (let layer = 0; layer < config.layers; layer++) specs.push(...layerParameters(config, layer));
  specs.push({ name: FINAL_NORM, shape: [config.hiddenSize], role: "norm" });
  if (!config.tieWordEmbeddings) {
    specs.push({ name: HEAD, shape: [config.vocabSize, config.hiddenSize], role: "matrix" });
  }
  return specs;
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

export function parameterCount(config: DecoderConfig): number {
  return parameterTable(config).reduce((sum, spec) => sum + elementCount(spec.shape), 0);
}
