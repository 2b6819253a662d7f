/**
 * Owns the policy: checkpoints, tokenizer, chat template, the decoder model with its backends, and batched
 * decoding. No network and no bus; the only files touched are checkpoint directories.
 */
export * from "./checkpoint/checkpoint.js";
export * from "./checkpoint/safetensors.js";
export * from "./counter-random.js";
export * from "./create-model.js";
export * from "./decode/batch-decoder.js";
export * from "./decoder-config.js";
export * from "./initialise-weights.js";
export * from "./model.js";
export { elementCount, type ParameterSpec, parameterCount, parameterTable } from "./parameter-table.js";
export type { TooManyTokens } from "./text/byte-level-encoder.js";
export * from "./text/chat-template.js";
export * from "./text/detokenize-stream.js";
export * from "./text/tokenizer.js";
export * from "./text/train-tokenizer.js";
