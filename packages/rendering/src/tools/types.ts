/** Owns the shapes between sampled text and tool calls, whatever syntax a policy was taught. */
import type { ToolSchema } from "@mortise/capture";

/** Opens and closes a call in the sampled text, for every supported syntax. */
export const CALL_OPEN = "<tool_call>";
export const CALL_CLOSE = "</tool_call>";

/** A call as the policy wrote it. */
export interface ParsedCall {
  readonly name: string;
  /** JSON text of the arguments. */
  readonly arguments: string;
}

/** One syntax between the call marks. */
export interface ToolFormat {
  readonly name: "positional" | "hermes";
  /** The call that `body` spells, or undefined when it spells none: then the text stays text. */
  parse(body: string, tools: readonly ToolSchema[]): ParsedCall | undefined;
}
