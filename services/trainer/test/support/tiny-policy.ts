/** A real checkpoint of a few thousand parameters, with a trained tokenizer and a chat template. */
import { join } from "node:path";
import {
  type DecoderConfig,
  initialiseWeights,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";

/** Messages end with a line break, as in most published templates. */
export const CHAT_TEMPLATE = [
  "{%- for message in messages -%}",
  "{{ '<|im_start|>' + message.role + '\\n' }}",
  "{%- if message.content -%}{{ message.content }}{%- endif -%}",
  "{%- for call in message.tool_calls or [] -%}{{ '[' + call.function.name + ' ' + call.function.arguments.old + ']' }}{%- endfor -%}",
  "{{ '<|im_end|>\\n' }}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}",
].join("");

const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

export function tinyFiles(chatTemplate = CHAT_TEMPLATE) {
  const trained = trainTokenizer(["user assistant tool fix the sum ok done"], {
    maxMerges: 20,
    specialTokens: SPECIAL,
  });
  const files = tokenizerFiles(trained, {
    eosToken: "<|im_end|>",
    padToken: "<|endoftext|>",
    chatTemplate,
    maxLength: 128,
  });
  return { files, vocabSize: trained.vocabSize };
}

export function tinyConfig(vocabSize: number): DecoderConfig {
  return {
    modelType: "qwen3",
    vocabSize,
    hiddenSize: 16,
    intermediateSize: 32,
    layers: 2,
    heads: 2,
    kvHeads: 1,
    headDim: 8,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 8,
    maxPositions: 128,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
  };
}

/** Writes the checkpoint into `<directory>/policy` and returns that path. */
export async function writeTinyPolicy(directory: string): Promise<string> {
  const { files, vocabSize } = tinyFiles();
  const config = tinyConfig(vocabSize);
  const path = join(directory, "policy");
  await writeCheckpoint(path, { config, weights: initialiseWeights(config, 1), tokenizerFiles: files });
  return path;
}
