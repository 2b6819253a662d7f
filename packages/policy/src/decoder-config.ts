/**
 * Owns the shape of a decoder: which architectures are supported and how a Hugging Face config.json is read.
 * Does not own weights (parameters.ts) or files (checkpoint/).
 */
import { MortiseError } from "@mortise/contracts";

/** A dense causal decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU. */
export interface DecoderConfig {
  readonly modelType: "llama" | "qwen2" | "qwen3";
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** May differ from hiddenSize / heads (Qwen3). */
  readonly headDim: number;
  readonly rmsNormEps: number;
  readonly ropeTheta: number;
  /** Rotated dimensions of a head, even, at most headDim. */
  readonly rotaryDim: number;
  readonly maxPositions: number;
  readonly tieWordEmbeddings: boolean;
  /** Qwen2: biases on the q, k and v projections. */
  readonly qkvBias: boolean;
  /** Qwen3: RMSNorm over each head of q and k, before rotation. */
  readonly qkNorm: boolean;
}

type Json = Readonly<Record<string, unknown>>;

const DEFAULT_THETA = 10_000;

function refuse(source: string, field: string, found: unknown, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_UNSUPPORTED",
    message: `${source}: ${field} is ${JSON.stringify(found)}.`,
    fix,
    detail: { source, field },
  });
}

function invalid(source: string, field: string, found: unknown, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_POLICY_CHECKPOINT",
    message: `${source}: ${field} is ${found === undefined ? "missing" : JSON.stringify(found)}.`,
    fix,
    detail: { source, field },
  });
}

function positiveInteger(json: Json, field: string, source: string, fallback?: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1) {
    throw invalid(source, field, json[field], `Set ${field} to a positive integer.`);
  }
  return value;
}

function positiveNumber(json: Json, field: string, source: string, fallback: number): number {
  const value = json[field] ?? fallback;
  if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
    throw invalid(source, field, json[field], `Set ${field} to a number above 0.`);
  }
  return value;
}

interface Rope {
  readonly theta: number;
  readonly rotaryDim: number;
}

/** `rope_theta` at the top, or nested in `rope_parameters`. Any scaling of positions is refused. */
function readRope(json: Json, headDim: number, source: string): Rope {
  const nested = (json.rope_parameters ?? {}) as Json;
  for (const [field, scaling] of [
    ["rope_scaling", json.rope_scaling],
    ["rope_parameters", json.rope_parameters],
  ] as const) {
    if (scaling === undefined || scaling === null) continue;
    const kind = (scaling as Json).rope_type ?? (scaling as Json).type ?? "default";
    if (kind !== "default") {
      throw refuse(source, `${field}.rope_type`, kind, "Use a checkpoint with plain rotary positions.");
    }
  }
  const fraction = positiveNumber(
    nested,
    "partial_rotary_factor",
    source,
    positiveNumber(json, "partial_rotary_factor", source, 1),
  );
  const rotaryDim = Math.floor(headDim * fraction);
  if (rotaryDim % 2 !== 0 || rotaryDim > headDim || rotaryDim < 2) {
    throw refuse(
      source,
      "partial_rotary_factor",
      fraction,
      "The rotated part of a head must have an even size.",
    );
  }
  return {
    theta: positiveNumber(
      nested,
      "rope_theta",
      source,
      positiveNumber(json, "rope_theta", source, DEFAULT_THETA),
    ),
    rotaryDim,
  };
}

/** Features that would change the numbers if they were ignored. */
function refuseUnsupported(json: Json, source: string): void {
  const modelType = json.model_type;
  if (modelType !== "llama" && modelType !== "qwen2" && modelType !== "qwen3") {
    throw refuse(
      source,
      "model_type",
      modelType ?? null,
      "Supported are llama, qwen2 and qwen3 (dense decoders).",
    );
  }
  if ((json.hidden_act ?? "silu") !== "silu") {
    throw refuse(source, "hidden_act", json.hidden_act, "Only silu is supported.");
  }
  if (json.use_sliding_window === true) {
    throw refuse(source, "use_sliding_window", true, "Use a checkpoint with full attention in every layer.");
  }
  if (json.mlp_bias === true) throw refuse(source, "mlp_bias", true, "Use a checkpoint without MLP biases.");
  if (modelType !== "qwen2" && json.attention_bias === true) {
    throw refuse(source, "attention_bias", true, "Attention biases are supported for qwen2 only.");
  }
}

function checkWidths(config: DecoderConfig, source: string): void {
  if (config.heads % config.kvHeads !== 0) {
    throw invalid(
      source,
      "num_key_value_heads",
      config.kvHeads,
      `It must divide num_attention_heads (${config.heads}).`,
    );
  }
  for (const [field, value] of [
    ["hidden_size", config.hiddenSize],
    ["intermediate_size", config.intermediateSize],
    ["head_dim", config.headDim],
  ] as const) {
    if (value % 4 !== 0)
      throw refuse(source, field, value, "The kernels work on four numbers at once: use a multiple of 4.");
  }
}

/** Reads a parsed config.json. @param source the file's name, for errors. @throws MortiseError naming field and fix. */
export function decoderConfigFromHf(json: unknown, source = "config.json"): DecoderConfig {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw invalid(source, "the document", json, "It must be a JSON object.");
  }
  const raw = json as Json;
  refuseUnsupported(raw, source);
  const hiddenSize = positiveInteger(raw, "hidden_size", source);
  const heads = positiveInteger(raw, "num_attention_heads", source);
  const headDim = positiveInteger(raw, "head_dim", source, hiddenSize / heads);
  const rope = readRope(raw, headDim, source);
  const config: DecoderConfig = {
    modelType: raw.model_type as DecoderConfig["modelType"],
    vocabSize: positiveInteger(raw, "vocab_size", source),
    hiddenSize,
    intermediateSize: positiveInteger(raw, "intermediate_size", source),
    layers: positiveInteger(raw, "num_hidden_layers", source),
    heads,
    kvHeads: positiveInteger(raw, "num_key_value_heads", source, heads),
    headDim,
    rmsNormEps: positiveNumber(raw, "rms_norm_eps", source, 1e-6),
    ropeTheta: rope.theta,
    rotaryDim: rope.rotaryDim,
    maxPositions: positiveInteger(raw, "max_position_embeddings", source, 2048),
    tieWordEmbeddings: raw.tie_word_embeddings === true,
    qkvBias: raw.model_type === "qwen2",
    qkNorm: raw.model_type === "qwen3",
  };
  checkWidths(config, source);
  return config;
}

const ARCHITECTURES = {
  llama: "LlamaForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
} as const;

/** The config.json of a checkpoint that other tools (transformers, vLLM, llama.cpp converters) can load. */
export function hfFromDecoderConfig(config: DecoderConfig): Record<string, unknown> {
  return {
    architectures: [ARCHITECTURES[config.modelType]],
    model_type: config.modelType,
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    hidden_act: "silu",
    rms_norm_eps: config.rmsNormEps,
    rope_theta: config.ropeTheta,
    ...(config.rotaryDim === config.headDim
      ? {}
      : { partial_rotary_factor: config.rotaryDim / config.headDim }),
    max_position_embeddings: config.maxPositions,
    tie_word_embeddings: config.tieWordEmbeddings,
    attention_bias: config.qkvBias,
    torch_dtype: "float32",
  };
}
