/** Owns the questions the signal readers ask of a call in common. */
import type { CallFacts } from "./types.js";

/** Tools the policy is offered; hosted ones are not among them. */
export function offersTools({ conversation }: CallFacts): boolean {
  return conversation.tools.length > 0;
}

export function hasReplies({ conversation }: CallFacts): boolean {
  return conversation.messages.some((message) => message.role === "assistant");
}

export function userAgentOf({ headers }: CallFacts): string {
  return headers["user-agent"] ?? "";
}

/** The vendors' own JavaScript clients, as harnesses without a name of their own use them. */
export function isVendorClient(facts: CallFacts): boolean {
  return /^(OpenAI|Anthropic)\/JS /.test(userAgentOf(facts));
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
