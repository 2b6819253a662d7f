/**
 * Owns the checkpoint of the scripted policy: a byte-level tokenizer trained on the spot, a chat template with
 * Hermes calls, and weights nobody reads. Any text a harness sends has ids, so prompts and replies pass through
 * the proxy as those of a real policy do.
 */
import { join } from "node:path";
import {
  type DecoderConfig,
  initialiseWeights,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";

export const END_OF_TURN = "<|im_end|>";
export const TURN_OPENING = "<|im_start|>";
export const TOOLS_HEADING = "# Offered tools";
const SPECIAL_TOKENS = ["<|endoftext|>", TURN_OPENING, END_OF_TURN, "<tool_call>", "</tool_call>"];

/** Merges shorten prompts of common words; everything else is bytes. */
const MAX_MERGES = 160;
const CORPUS = [
  "user assistant system tool name arguments description type object string boolean number properties required",
  "the of and to in a is that for it with as be this on are by or not you use when file files command path text",
  "code agent task should will can from at have if your all any more only new one other which each must may do",
];

/** Every message in the order it came, so the template can be extended by appending. */
const CHAT_TEMPLATE = [
  "{%- if tools -%}",
  `{{ '${TURN_OPENING}system\\n${TOOLS_HEADING}' }}`,
  "{%- for tool in tools -%}{{ '\\n' + (tool | tojson) }}{%- endfor -%}",
  `{{ '${END_OF_TURN}\\n' }}`,
  "{%- endif -%}",
  "{%- for message in messages -%}",
  `{{ '${TURN_OPENING}' + message.role + '\\n' }}`,
  "{%- if message.content -%}{{ message.content }}{%- endif -%}",
  "{%- for call in message.tool_calls or [] -%}",
  '{{ \'<tool_call>\\n{"name": "\' + call.function.name + \'", "arguments": \' }}',
  "{{ call.function.arguments | tojson }}",
  "{{ '}\\n</tool_call>' }}",
  "{%- endfor -%}",
  `{{ '${END_OF_TURN}\\n' }}`,
  "{%- endfor -%}",
  `{%- if add_generation_prompt -%}{{ '${TURN_OPENING}assistant\\n' }}{%- endif -%}`,
].join("");

/** Writes the checkpoint below `directory`. @returns its path and the weights as published */
export async function writePolicy(
  directory: string,
  maxPositions: number,
): Promise<{ checkpoint: string; weights: Uint8Array }> {
  const trained = trainTokenizer(CORPUS, { maxMerges: MAX_MERGES, specialTokens: SPECIAL_TOKENS });
  const config: DecoderConfig = {
    modelType: "qwen3",
    vocabSize: trained.vocabSize,
    hiddenSize: 8,
    intermediateSize: 8,
    layers: 1,
    heads: 1,
    kvHeads: 1,
    headDim: 8,
    rmsNormEps: 1e-6,
    ropeTheta: 10_000,
    rotaryDim: 8,
    maxPositions,
    tieWordEmbeddings: true,
    qkvBias: false,
    qkNorm: true,
  };
  const weights = initialiseWeights(config, 1);
  const checkpoint = join(directory, `policy-${maxPositions}`);
  await writeCheckpoint(checkpoint, {
    config,
    weights,
    tokenizerFiles: tokenizerFiles(trained, {
      eosToken: END_OF_TURN,
      padToken: "<|endoftext|>",
      chatTemplate: CHAT_TEMPLATE,
      maxLength: maxPositions,
    }),
  });
  return { checkpoint, weights };
}

/** Text of one reply as the policy would sample it. `calls` are written in the Hermes syntax. */
export function replyText(
  text: string,
  calls: readonly { readonly name: string; readonly arguments: object }[],
): string {
  const written = calls.map(
    (call) =>
      `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${JSON.stringify(call.arguments)}}\n</tool_call>`,
  );
  return [text, ...written].filter((part) => part !== "").join("\n");
}
