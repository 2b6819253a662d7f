/**
 * A tiny mixture-of-experts checkpoint of the Qwen3 architecture, randomly initialised: what a server needs to
 * report routed experts. Our own model computes dense decoders only, so nothing is compared on it.
 */
import {
  CounterRandom,
  type DecoderConfig,
  hfFromDecoderConfig,
  type Tensor,
  type TokenizerFiles,
  writeCheckpoint,
  writeSafetensors,
} from "@mortise/policy";

export const EXPERTS = 8;
export const EXPERTS_PER_TOKEN = 2;
const EXPERT_WIDTH = 32;

export async function writeMoeCheckpoint(
  path: string,
  dense: DecoderConfig,
  tokenizerFiles: TokenizerFiles,
): Promise<void> {
  const hfConfig = {
    ...hfFromDecoderConfig({ ...dense, tieWordEmbeddings: false }),
    architectures: ["Qwen3MoeForCausalLM"],
    model_type: "qwen3_moe",
    num_experts: EXPERTS,
    num_experts_per_tok: EXPERTS_PER_TOKEN,
    moe_intermediate_size: EXPERT_WIDTH,
    norm_topk_prob: true,
    decoder_sparse_step: 1,
    mlp_only_layers: [],
  };
  await writeCheckpoint(path, { config: dense, hfConfig, weights: weightsOf(dense), tokenizerFiles });
}

function weightsOf(config: DecoderConfig): Uint8Array {
  const { hiddenSize, vocabSize, heads, kvHeads, headDim, layers } = config;
  const tensors: [string, Tensor][] = [
    ["model.embed_tokens.weight", matrix("embed", [vocabSize, hiddenSize])],
    ["lm_head.weight", matrix("head", [vocabSize, hiddenSize])],
    ["model.norm.weight", ones(hiddenSize)],
  ];
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}`;
    const own = (name: string, shape: [number, number]): [string, Tensor] => [
      `${at}.${name}`,
      matrix(`${at}.${name}`, shape),
    ];
    tensors.push(
      [`${at}.input_layernorm.weight`, ones(hiddenSize)],
      [`${at}.post_attention_layernorm.weight`, ones(hiddenSize)],
      [`${at}.self_attn.q_norm.weight`, ones(headDim)],
      [`${at}.self_attn.k_norm.weight`, ones(headDim)],
      own("self_attn.q_proj.weight", [heads * headDim, hiddenSize]),
      own("self_attn.k_proj.weight", [kvHeads * headDim, hiddenSize]),
      own("self_attn.v_proj.weight", [kvHeads * headDim, hiddenSize]),
      own("self_attn.o_proj.weight", [hiddenSize, heads * headDim]),
      own("mlp.gate.weight", [EXPERTS, hiddenSize]),
    );
    for (let expert = 0; expert < EXPERTS; expert++)
      tensors.push(
        own(`mlp.experts.${expert}.gate_proj.weight`, [EXPERT_WIDTH, hiddenSize]),
        own(`mlp.experts.${expert}.up_proj.weight`, [EXPERT_WIDTH, hiddenSize]),
        own(`mlp.experts.${expert}.down_proj.weight`, [hiddenSize, EXPERT_WIDTH]),
      );
  }
  return writeSafetensors(tensors);
}

function matrix(key: string, shape: [number, number]): Tensor {
  const random = new CounterRandom(`moe/${key}`);
  const scale = 1 / Math.sqrt(shape[1]);
  return {
    shape,
    values: Float32Array.from({ length: shape[0] * shape[1] }, (_, at) => scale * random.normal(at)),
  };
}

function ones(length: number): Tensor {
  return { shape: [length], values: new Float32Array(length).fill(1) };
}
