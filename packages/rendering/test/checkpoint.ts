/** Owns tiny checkpoints for tests: a byte-level tokenizer with the given special tokens, and a chat template. */
import type { SampledPart, ToolSchema } from "@mortise/capture";
import { ChatTemplate, Tokenizer, tokenizerFiles, trainTokenizer } from "@mortise/policy";
import { Renderer, type RenderingPolicy } from "../src/render/renderer.js";
import { ReplyParser, type ReplySyntax } from "../src/tools/reply-parser.js";

/** Every mark is one token. */
export const MARKED_TOKENS = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<think>",
  "</think>",
];
/** No mark is a token: they are recognised by their text. */
export const UNMARKED_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

export function tinyCheckpoint(chatTemplate: string, specialTokens: readonly string[] = MARKED_TOKENS) {
  const trained = trainTokenizer(["user assistant edit done <function= <parameter="], {
    maxMerges: 20,
    specialTokens,
  });
  const files = tokenizerFiles(trained, {
    eosToken: "<|im_end|>",
    padToken: "<|endoftext|>",
    chatTemplate,
    maxLength: 512,
  });
  const tokenizer = new Tokenizer(files);
  const eosIds = new Set([tokenizer.idOf("<|im_end|>")!]);
  const template = new ChatTemplate(files);
  return {
    files,
    tokenizer,
    eosIds,
    template,
    renderer: (policy: RenderingPolicy = {}) =>
      new Renderer({ chatTemplate: template, tokenizer, eosIds, policy }),
  };
}

export const EDIT: ToolSchema = {
  name: "edit",
  description: "",
  parameters: {
    type: "object",
    properties: { old: { type: "string" }, new: { type: "string" }, count: { type: "integer" } },
    required: ["old", "new"],
  },
};

/** The parts of ids that come in pieces of these lengths, over and over; one by one without any. */
export function partsOf(syntax: ReplySyntax, ids: readonly number[], cuts: readonly number[] = [1]) {
  const parser = new ReplyParser(syntax);
  const parts: SampledPart[] = [];
  for (let at = 0, k = 0; at < ids.length; k++) {
    const length = cuts[k % cuts.length] ?? 1;
    parts.push(...parser.push(ids.slice(at, at + length)));
    at += length;
  }
  parts.push(...parser.end());
  return { parts: joined(parts), raw: parts, reasoningTokens: parser.reasoningTokens, notes: parser.notes };
}

/** Deltas of one kind that follow each other as one part. */
export function joined(parts: readonly SampledPart[]): SampledPart[] {
  const list: SampledPart[] = [];
  for (const part of parts) {
    const last = list.at(-1);
    if (last?.kind === part.kind && "text" in part && "text" in last)
      list[list.length - 1] = { ...last, text: last.text + part.text };
    else list.push(part);
  }
  return list;
}

/** Calls as a harness sees them, and whether each came to its end. */
export function callsOf(parts: readonly SampledPart[]) {
  const calls: { name: string; arguments: string; isEnded: boolean }[] = [];
  for (const part of parts) {
    if (part.kind === "call-start") calls[part.call] = { name: part.name, arguments: "", isEnded: false };
    if (part.kind === "call-arguments") calls[part.call]!.arguments += part.text;
    if (part.kind === "call-end") calls[part.call]!.isEnded = true;
  }
  return calls;
}

export function textOf(parts: readonly SampledPart[], kind: "text" | "reasoning" = "text"): string {
  return parts.map((part) => (part.kind === kind ? part.text : "")).join("");
}
