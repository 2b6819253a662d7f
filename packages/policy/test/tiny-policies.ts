/** Tiny configurations of every supported architecture, and rows of random ids for them. */
import { CounterRandom, type DecoderConfig, decoderConfigFromHf, type TrainingRow } from "../src/index.js";

const base = {
  vocab_size: 37,
  hidden_size: 24,
  intermediate_size: 36,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  rms_norm_eps: 1e-5,
  max_position_embeddings: 256,
};

export const tinyConfigs: Readonly<Record<string, DecoderConfig>> = {
  "llama tied": decoderConfigFromHf({ ...base, model_type: "llama", head_dim: 8, tie_word_embeddings: true }),
  "llama untied, partial rotary": decoderConfigFromHf({
    ...base,
    model_type: "llama",
    head_dim: 12,
    partial_rotary_factor: 0.5,
  }),
  "qwen2 with biases": decoderConfigFromHf({
    ...base,
    model_type: "qwen2",
    head_dim: 8,
    rope_theta: 1e6,
    tie_word_embeddings: true,
  }),
  "qwen3 with q/k norms": decoderConfigFromHf({
    ...base,
    model_type: "qwen3",
    head_dim: 16,
    rope_parameters: { rope_theta: 5000 },
  }),
};

export function randomIds(key: string, length: number, vocabSize: number): Int32Array {
  const random = new CounterRandom(key);
  return Int32Array.from({ length }, (_, i) => Math.floor(random.uniform(i) * vocabSize));
}

export function randomRows(key: string, lengths: readonly number[], vocabSize: number): TrainingRow[] {
  return lengths.map((length, i) => ({ ids: randomIds(`${key}/${i}`, length, vocabSize) }));
}

/** Largest absolute difference; NaN in the same place counts as equal. */
export function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let worst = Math.abs(a.length - b.length);
  for (let i = 0; i < a.length; i++) {
    if (Number.isNaN(a[i]) && Number.isNaN(b[i])) continue;
    const difference = Math.abs(a[i]! - b[i]!);
    worst = difference > worst || Number.isNaN(difference) ? difference : worst;
  }
  return worst;
}
