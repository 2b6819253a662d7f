/**
 * Owns what a run starts from: demonstrations, a tokenizer trained on them, a checkpoint with random weights.
 * Deterministic in the seed. Does not train (the trainer's warm start does).
 */
import { existsSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import {
  type ChatMessage,
  ChatTemplate,
  initialiseWeights,
  type TokenizerFiles,
  tokenizerFiles,
  trainTokenizer,
  writeCheckpoint,
} from "@mortise/policy";
import {
  DEMO_SPECIAL_TOKENS,
  type Demonstration,
  type DemoTask,
  demoChatTemplate,
  demonstrationLines,
  demoTools,
  generateDemonstrations,
} from "@mortise/tasks";
import { DEMONSTRATIONS, demoPolicyConfig, TOKENIZER_MERGES, TOKENIZER_SAMPLE } from "./recipe.js";

const PAD_TOKEN = "<|endoftext|>";
const END_OF_TURN = "<|im_end|>";

export interface PolicyPlaces {
  readonly checkpoint: string;
  readonly demonstrations: string;
}

/** Writes both, each complete or not at all; finds what an earlier start of the same run wrote. */
export async function preparePolicy(
  places: PolicyPlaces,
  train: readonly DemoTask[],
  seed: number,
): Promise<void> {
  const demonstrations = generateDemonstrations(train, { seed, ...DEMONSTRATIONS });
  if (!existsSync(places.demonstrations)) {
    await writeFile(`${places.demonstrations}.partial`, demonstrationLines(demonstrations));
    await rename(`${places.demonstrations}.partial`, places.demonstrations);
  }
  if (existsSync(places.checkpoint)) return;
  const partial = `${places.checkpoint}.partial`;
  await rm(partial, { recursive: true, force: true });
  const { files, vocabSize } = trainDemoTokenizer(demonstrations);
  const config = demoPolicyConfig(vocabSize);
  await writeCheckpoint(partial, { config, weights: initialiseWeights(config, seed), tokenizerFiles: files });
  await rename(partial, places.checkpoint);
}

function trainDemoTokenizer(demonstrations: readonly Demonstration[]): {
  files: TokenizerFiles;
  vocabSize: number;
} {
  const roles = {
    eosToken: END_OF_TURN,
    padToken: PAD_TOKEN,
    chatTemplate: demoChatTemplate,
    maxLength: 256,
  };
  const specialTokens = [...DEMO_SPECIAL_TOKENS, PAD_TOKEN];
  // The template alone needs no vocabulary: rendered texts are what the vocabulary is then learnt from.
  const template = new ChatTemplate(tokenizerFiles({ tokenizerJson: "{}", vocabSize: 0 }, roles));
  const texts = demonstrations
    .slice(0, TOKENIZER_SAMPLE)
    .map(({ messages }) =>
      template.renderMessages(messages.map(forTemplate), demoTools, { addGenerationPrompt: false }),
    );
  const trained = trainTokenizer(texts, { maxMerges: TOKENIZER_MERGES, specialTokens });
  return { files: tokenizerFiles(trained, roles), vocabSize: trained.vocabSize };
}

/** Chat templates expect a call's arguments as a mapping; the API carries them as text. */
function forTemplate(message: Demonstration["messages"][number]): ChatMessage {
  if (!("tool_calls" in message)) return message;
  const calls = message.tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: JSON.parse(call.function.arguments) as unknown },
  }));
  return { ...message, tool_calls: calls };
}
