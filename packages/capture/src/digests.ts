/**
 * Owns the digests by which histories are compared: SHA-256 of normalised messages, tool schemas and bodies.
 * Turn records carry digests, never text, so a restarted proxy aligns history from the journal alone.
 * Does not decide what matches (see turn-tree.ts).
 */
import { createHash } from "node:crypto";
import type { Conversation, Message, ToolSchema } from "./conversation.js";

/** A message of a request, as the turn tree sees it. */
export interface DigestedMessage {
  readonly role: Message["role"];
  readonly digest: Uint8Array;
  /** Ids of an assistant message's calls, in order; empty for other roles. */
  readonly callIds: readonly string[];
  /** Digest of an assistant message's text alone: how an echo without calls is recognised. */
  readonly textDigest: Uint8Array | undefined;
}

export interface RequestDigests {
  readonly messages: readonly DigestedMessage[];
  readonly tools: Uint8Array;
  /** Equal bodies are retries of each other (C6). */
  readonly body: Uint8Array;
}

/** Digests of a normalised conversation. `choice` is the request's tool choice, part of the body. */
export function digestRequest(conversation: Conversation, choice: unknown = null): RequestDigests {
  const messages = conversation.messages.map(digestMessage);
  const tools = digestTools(conversation.tools);
  const body = createHash("sha256");
  for (const message of messages) body.update(message.digest);
  body.update(tools).update(canonicalJson(choice));
  return { messages, tools, body: body.digest() };
}

/** Digest of a reply's text without its tool calls. */
export function digestText(text: string): Uint8Array {
  return sha256(text);
}

/** Digest of the tool schemas; independent of key order, dependent on the order of the tools. */
export function digestTools(tools: readonly ToolSchema[]): Uint8Array {
  return sha256(canonicalJson(tools.map((tool) => [tool.name, tool.description, tool.parameters])));
}

function digestMessage(message: Message): DigestedMessage {
  const { role, text } = message;
  if (role === "assistant") {
    const calls = message.toolCalls.map((call) => [call.id, call.name, call.arguments]);
    return {
      role,
      digest: sha256(JSON.stringify([role, text, calls])),
      callIds: message.toolCalls.map((call) => call.id),
      textDigest: sha256(text),
    };
  }
  const parts = role === "tool" ? [role, text, message.toolCallId] : [role, text];
  return { role, digest: sha256(JSON.stringify(parts)), callIds: [], textDigest: undefined };
}

/** JSON with object keys in code-unit order, so that equal values have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, inner: unknown) => {
    if (inner === null || typeof inner !== "object" || Array.isArray(inner)) return inner;
    const entries = Object.entries(inner as Record<string, unknown>);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

function sha256(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
