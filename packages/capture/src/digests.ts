/**
 * Owns the digests by which histories are compared: SHA-256 of normalised messages, tool schemas and bodies.
 * Turn records carry digests, never text, so a restarted proxy aligns history from the journal alone.
 * Does not decide what matches (see turn-tree.ts).
 *
 * A history is recognised by a chain of digests with a link before each assistant message, so one lookup finds
 * the turns a request may extend there, however many there are. In the chain an assistant message is what
 * identifies its turn (ids of its calls, or its text), because harnesses respell names and arguments (C4).
 */
import { hash } from "node:crypto";
import type { Conversation, Message, ToolSchema } from "./conversation.js";

/** A message of a request, as the turn tree sees it. */
export interface DigestedMessage {
  readonly role: Message["role"];
  /** Of everything that is compared in the message. */
  readonly digest: Uint8Array;
  /** What is compared of the ids of an assistant message's calls, in order; empty for other roles. */
  readonly callIds: readonly string[];
  /** Of an assistant message without calls: digest of its text, how its echo is recognised. */
  readonly textDigest: Uint8Array | undefined;
}

/** Recognises a text that stands at the beginning or end of a longer one. */
export interface TextDigest {
  /** UTF-16 code units. */
  readonly length: number;
  /** First bytes of the text's SHA-256. */
  readonly digest: Uint8Array;
}

export interface RequestDigests {
  readonly messages: readonly DigestedMessage[];
  readonly tools: Uint8Array;
  /** Equal bodies are retries of each other (C6). */
  readonly body: Uint8Array;
  readonly history: History;
  /** Of what was said, without system messages and tools: survives a request that was degraded. */
  readonly spoken: Uint8Array;
}

/** Bytes of a text digest: enough to tell the texts of one session apart. */
const TEXT_DIGEST_BYTES = 16;
const NO_TEXT = digestText("");
const UTF8 = new TextEncoder();

/**
 * Digests of a normalised conversation.
 * @param choice the request's tool choice, part of the body
 * @param caller whose call it is: two agents that ask the same are not each other's retries
 */
export function digestRequest(
  conversation: Conversation,
  choice: unknown = null,
  caller = "",
): RequestDigests {
  const messages = conversation.messages.map(digestMessage);
  return joinDigests(messages, new History(messages), digestTools(conversation.tools), { choice, caller });
}

/** The digests of a request from those of its parts. */
export function joinDigests(
  messages: readonly DigestedMessage[],
  history: History,
  tools: Uint8Array,
  { choice, caller }: { readonly choice: unknown; readonly caller: string },
): RequestDigests {
  const digests = messages.map((message) => message.digest);
  const spoken = digests.filter((_, at) => messages[at]!.role !== "system");
  return {
    messages,
    tools,
    body: sha256(Buffer.concat([...digests, tools, Buffer.from(canonicalJson([choice, caller]))])),
    history,
    spoken: sha256(Buffer.concat(spoken)),
  };
}

/** Digests of the beginnings of one request's messages. */
export class History {
  private readonly identities: readonly Uint8Array[];
  /** Places of assistant messages, with the link before each. */
  private readonly links = new Map<number, Uint8Array>();
  private readonly places: number[] = [];

  /** @param known of a request that begins with the same `shared` messages: what it knows is not computed again */
  constructor(messages: readonly DigestedMessage[], known?: { history: History; shared: number }) {
    const shared = known?.shared ?? 0;
    const before = known?.history.identities.slice(0, shared) ?? [];
    this.identities = [...before, ...messages.slice(shared).map(identity)];
    for (const [at, { role }] of messages.entries()) {
      if (role !== "assistant") continue;
      this.links.set(at, (at < shared ? known?.history.links.get(at) : undefined) ?? this.before(at));
      this.places.push(at);
    }
  }

  /** Digest of the first `count` messages. The same for every request that begins with them. */
  before(count: number): Uint8Array {
    const known = this.links.get(count);
    if (known) return known;
    const from = this.places.findLast((place) => place < count);
    if (from === undefined) return sha256(Buffer.concat(this.identities.slice(0, count)));
    return sha256(Buffer.concat([this.links.get(from)!, ...this.identities.slice(from, count)]));
  }

  /** Digest of all messages. */
  get whole(): Uint8Array {
    return this.before(this.identities.length);
  }
}

/**
 * Digest of a reply's text without its tool calls. White space around it does not count: clients trim it, as
 * their APIs ask.
 */
export function digestText(text: string): Uint8Array {
  return sha256(text.trim());
}

/** System messages a request begins with. */
export function openingSystems(messages: readonly DigestedMessage[]): number {
  const first = messages.findIndex((message) => message.role !== "system");
  return first < 0 ? messages.length : first;
}

/**
 * What is compared of a call's id. Some clients keep two ids in one, joined by a bar, and send back the first.
 * Ids of ours hold none.
 */
export function comparedId(id: string): string {
  const bar = id.indexOf("|");
  return bar > 0 ? id.slice(0, bar) : id;
}

/** Whether a text digest is that of no text, or of white space. */
export function isNoText(digest: Uint8Array): boolean {
  return equalBytes(digest, NO_TEXT);
}

/** Digest of the tool schemas; independent of key order, dependent on the order of the tools. */
export function digestTools(tools: readonly ToolSchema[]): Uint8Array {
  return sha256(canonicalJson(tools.map((tool) => [tool.name, tool.description, tool.parameters])));
}

export function textDigest(text: string): TextDigest {
  return { length: text.length, digest: sha256(text).subarray(0, TEXT_DIGEST_BYTES) };
}

/** Whether `text` ends with the digested one. */
export function endsWithDigest(text: string, part: TextDigest): boolean {
  return part.length <= text.length && isText(text.slice(text.length - part.length), part);
}

/** Whether `text` begins with the digested one. */
export function startsWithDigest(text: string, part: TextDigest): boolean {
  return part.length <= text.length && isText(text.slice(0, part.length), part);
}

/** JSON with object keys in code-unit order, so that equal values have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value ?? null, (_key, inner: unknown) => {
    if (inner === null || typeof inner !== "object" || Array.isArray(inner)) return inner;
    const entries = Object.entries(inner as Record<string, unknown>);
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** A digest as a key of a map. */
export function keyOf(digest: Uint8Array): string {
  return Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString("base64");
}

export function digestMessage(message: Message): DigestedMessage {
  const { role, text } = message;
  if (role === "assistant") {
    const calls = message.toolCalls.map((call) => [call.id, call.name, call.arguments]);
    return {
      role,
      digest: sha256(headed([role, calls], text)),
      callIds: message.toolCalls.map((call) => comparedId(call.id)),
      textDigest: calls.length > 0 ? undefined : digestText(text),
    };
  }
  const head = role === "tool" ? [role, comparedId(message.toolCallId)] : [role];
  return { role, digest: sha256(headed(head, text)), callIds: [], textDigest: undefined };
}

/** JSON holds no line break, so the border between head and text is certain. */
function headed(head: unknown, text: string): string {
  return `${JSON.stringify(head)}\n${text}`;
}

/** What a message is told by in a longer history. */
function identity({ role, digest, callIds, textDigest: text }: DigestedMessage): Uint8Array {
  if (role !== "assistant") return digest;
  // Small Buffers are cut from one slab of several kilobytes, which a remembered one would keep alive.
  return callIds.length > 0 ? UTF8.encode(JSON.stringify(callIds)) : text!;
}

function isText(text: string, { digest }: TextDigest): boolean {
  return equalBytes(sha256(text).subarray(0, TEXT_DIGEST_BYTES), digest);
}

function sha256(content: string | Uint8Array): Uint8Array {
  return hash("sha256", content, "buffer");
}
