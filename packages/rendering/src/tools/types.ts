/** Owns the shapes between sampled text and tool calls, whatever syntax a policy was taught. */
import type { ToolSchema } from "@mortise/capture";

export type ToolFormatName = "positional" | "hermes" | "qwen-xml" | "llama-json";

/**
 * Reads one call while it arrives. A reader that has a name is a call whatever follows: what is malformed
 * behind the name reaches the harness as malformed arguments, which it answers and the policy learns from.
 */
export interface CallReader {
  /** Takes more of the body; returns what lies behind the end of the call, "" before it is complete. */
  push(text: string): string;
  /** Known once it is certain; never taken back. */
  readonly name: string | undefined;
  /** The text spells no call and never will. Only while there is no name. */
  readonly hasFailed: boolean;
  /** All of the call is there, but for its closing mark. */
  readonly isComplete: boolean;
  /** Argument text that became certain since the last time it was taken. */
  takeArguments(): string;
  /** The closing mark has come: gives what is still due. */
  close(): void;
}

/** One syntax of tool calls. */
export interface ToolFormat {
  readonly name: ToolFormatName;
  /** Texts that open a call; where the tokenizer has one of them as a token, only that token does. */
  readonly open: readonly string[];
  /** Text that closes a call; undefined where the call's own text tells its end. */
  readonly close: string | undefined;
  /** A reply may also begin with a call that no mark opens, at this character. */
  readonly bareStart: string | undefined;
  reader(tools: readonly ToolSchema[]): CallReader;
}

/** The marks of the formats that have any. */
export const CALL_OPEN = "<tool_call>";
export const CALL_CLOSE = "</tool_call>";

/** How a policy marks its reasoning. */
export interface ReasoningMarks {
  readonly open: string;
  readonly close: string;
}
