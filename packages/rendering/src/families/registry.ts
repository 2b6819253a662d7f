/**
 * Owns what is known of published model families: how one is recognised and what its chat template promises.
 * Nothing is decided by it: the renderer and the parsers go by what they find in the template itself. It is what
 * `verifyTemplate` compares those findings with, so that an altered template does not pass for the published one.
 */
import type { Tokenizer } from "@mortise/policy";
import type { HistoryPolicy } from "../render/renderer.js";
import type { ToolFormatName } from "../tools/types.js";

export interface FamilyProfile {
  readonly name: string;
  /** Syntax of its calls; undefined where the template writes none. */
  readonly calls: ToolFormatName | undefined;
  /** Whether the template marks reasoning, and whether a prompt ends inside it. */
  readonly reasoning: "none" | "in-reply" | "opened-in-prompt";
  /** Tokens that end a turn. */
  readonly endTokens: readonly string[];
  /** Earlier turns are never rewritten; where they are, `keep` differs from rendering anew. */
  readonly isAppendOnly: boolean;
  readonly history: readonly HistoryPolicy[];
  readonly takesLateSystem: boolean;
  /** At most one call in a reply. */
  readonly isSingleCall: boolean;
}

/** What a family is recognised by. */
export interface CheckpointFacts {
  readonly tokenizer: Tokenizer;
  /** Source of the chat template. */
  readonly template: string;
  /** `model_type` of config.json; undefined without one. */
  readonly modelType: string | undefined;
}

interface Family extends FamilyProfile {
  recognises(facts: CheckpointFacts): boolean;
}

const CHATML = ["<|im_end|>"];
const EVERY_POLICY: readonly HistoryPolicy[] = ["keep", "branch", "strip"];

const has = (facts: CheckpointFacts, token: string) => facts.tokenizer.idOf(token) !== undefined;
const says = (facts: CheckpointFacts, text: string) => facts.template.includes(text);

/** The first that recognises a checkpoint is its family. */
const FAMILIES: readonly Family[] = [
  {
    name: "qwen3.5",
    calls: "qwen-xml",
    reasoning: "opened-in-prompt",
    endTokens: CHATML,
    isAppendOnly: false,
    history: EVERY_POLICY,
    takesLateSystem: false,
    isSingleCall: false,
    recognises: (facts) => has(facts, "<tool_call>") && says(facts, "<function=") && says(facts, "<think>"),
  },
  {
    name: "qwen3-coder",
    calls: "qwen-xml",
    reasoning: "none",
    endTokens: CHATML,
    isAppendOnly: true,
    history: EVERY_POLICY,
    takesLateSystem: true,
    isSingleCall: false,
    recognises: (facts) => has(facts, "<tool_call>") && says(facts, "<function="),
  },
  {
    // As edited by Unsloth, the one of its templates that was verified.
    name: "smollm3",
    calls: undefined,
    reasoning: "in-reply",
    endTokens: CHATML,
    isAppendOnly: true,
    history: EVERY_POLICY,
    takesLateSystem: false,
    isSingleCall: false,
    recognises: (facts) => facts.modelType === "smollm3" || says(facts, "/no_think"),
  },
  {
    name: "qwen3",
    calls: "hermes",
    reasoning: "in-reply",
    endTokens: CHATML,
    isAppendOnly: false,
    history: EVERY_POLICY,
    takesLateSystem: true,
    isSingleCall: false,
    recognises: (facts) =>
      has(facts, "<tool_call>") && says(facts, "<tool_call>") && says(facts, "reasoning_content"),
  },
  {
    name: "qwen2.5",
    calls: "hermes",
    reasoning: "none",
    endTokens: CHATML,
    isAppendOnly: true,
    history: EVERY_POLICY,
    takesLateSystem: true,
    isSingleCall: false,
    recognises: (facts) => has(facts, "<tool_call>") && says(facts, "<tool_call>"),
  },
  {
    name: "llama3",
    calls: "llama-json",
    reasoning: "none",
    endTokens: ["<|eot_id|>"],
    isAppendOnly: true,
    history: EVERY_POLICY,
    takesLateSystem: true,
    isSingleCall: true,
    recognises: (facts) => has(facts, "<|eot_id|>") && says(facts, "<|start_header_id|>"),
  },
  {
    name: "smollm2",
    calls: undefined,
    reasoning: "none",
    endTokens: CHATML,
    isAppendOnly: true,
    history: EVERY_POLICY,
    takesLateSystem: true,
    isSingleCall: false,
    recognises: (facts) =>
      has(facts, "<|im_start|>") && has(facts, "<repo_name>") && says(facts, "<|im_start|>"),
  },
];

/** Undefined for a checkpoint of no known family; it is served by what its template shows. */
export function familyOf(facts: CheckpointFacts): FamilyProfile | undefined {
  return FAMILIES.find((family) => family.recognises(facts));
}

export const FAMILY_NAMES: readonly string[] = FAMILIES.map((family) => family.name);
