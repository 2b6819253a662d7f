/**
 * Owns what a scripted policy does in a case, apart from any harness: replies that reach marks, and the faults
 * that happen to them. A mark is reached by a tool call whose effect stays in the repository.
 */
import type { ToolUse, ToolVocabulary } from "@mortise/harness";

export const MARK = "milestone";
export const SIDE_MARK = "errand";
/** Stands in the prompt of a sub-agent and nowhere else. */
export const SIDE_PROMPT = "A side errand for a second agent:";
/** Commands append marks here; harnesses that can only edit change the source instead. */
export const MARKS_FILE = "marks.txt";
export const SOURCE_FILE = "src/milestones.js";
export const INSTRUCTION = `Repair milestones in ${SOURCE_FILE}: it should reach one after the other until the last`;

export type Fault =
  /** Stops at the length limit, in text or inside a call. */
  | { readonly kind: "stops-in-text" | "stops-in-call" }
  /** The first token takes this long. */
  | { readonly kind: "slow"; readonly ms: number }
  /** The engine fails after some tokens. */
  | { readonly kind: "engine-fails"; readonly afterTokens: number }
  /** The connection dies while the reply is streamed. */
  | { readonly kind: "cut-at-start" | "cut-behind-call" };

/** One reply: it reaches the marks `from` to `to`, one call each. */
export interface PlannedReply {
  readonly from: number;
  readonly to: number;
  /** `act`: reaches a mark; `bulk`: and prints a lot, where there are commands; `delegate`: by a sub-agent. */
  readonly form: "act" | "bulk" | "delegate";
  readonly text?: string;
  readonly fault?: Fault;
}

export interface Plan {
  readonly main: readonly PlannedReply[];
  readonly side?: readonly PlannedReply[];
}

export function markIn(mark: string, number: number): string {
  return `${mark}-${number}`;
}

/** One mark a reply. */
export function act(number: number, fault?: Fault): PlannedReply {
  return { from: number, to: number, form: "act", ...(fault && { fault }) };
}

/** As `act`, and the result of the call is long. */
export function bulk(number: number): PlannedReply {
  return { from: number, to: number, form: "bulk" };
}

/** Lines a bulk call prints, about 9 000 characters: below what harnesses cut short. */
const BULK_LINES = 2_000;

/** The calls of a reply. */
export function usesOf(reply: PlannedReply, mark: string, vocabulary: ToolVocabulary): ToolUse[] {
  const uses: ToolUse[] = [];
  for (let number = reply.from; number <= reply.to; number++)
    uses.push(useOf(reply, mark, number, vocabulary));
  return uses;
}

function useOf(reply: PlannedReply, mark: string, number: number, vocabulary: ToolVocabulary): ToolUse {
  const name = markIn(mark, number);
  if (reply.form === "delegate") {
    const prompt = `${SIDE_PROMPT} reach every errand, then say that it is done. It belongs to ${name}.`;
    return vocabulary.delegate!(prompt);
  }
  if (vocabulary.run) {
    const command = `echo ${name} >> ${MARKS_FILE}`;
    return vocabulary.run(reply.form === "bulk" ? `${command}; seq 1 ${BULK_LINES}` : command);
  }
  return vocabulary.replace!(`"${markIn(mark, number - 1)}"`, `"${name}"`);
}
