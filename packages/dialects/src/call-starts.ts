/**
 * Owns what a harness sees of a call that may yet be cut off. Harnesses run what they can parse, and some take
 * no text at all for no arguments, so that a call cut behind its name would be run.
 */
import type { ReplyPart } from "@mortise/capture";

type CallStart = Extract<ReplyPart, { kind: "call-start" }>;

/** Holds the beginning of a call back until some of its arguments, or its end, is known. */
export class CallStarts {
  private held: CallStart | undefined;

  /** The parts that may be shown now, in order. */
  release(part: ReplyPart): readonly ReplyPart[] {
    if (part.kind === "call-start") {
      this.held = part;
      return [];
    }
    if (part.kind === "call-arguments" && part.text === "") return [];
    const { held } = this;
    this.held = undefined;
    const isOfCall = part.kind === "call-arguments" || part.kind === "call-end";
    return held && isOfCall ? [held, part] : [part];
  }
}

/**
 * Whether a call that was cut off can be shown as a call: its harness then answers with an error, the policy
 * sees its mistake, and the agent goes on. Text that parses would be run.
 */
export function isUnrunnable(argumentText: string): boolean {
  if (argumentText.trim() === "") return false;
  try {
    JSON.parse(argumentText);
    return false;
  } catch {
    return true;
  }
}
