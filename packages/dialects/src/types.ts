/**
 * Owns the port between the model API's front and its wire protocols: a dialect reads a body into one request
 * type, and writes one reply, or one refusal, as its clients expect. Pure: no sockets, no sessions, no clock.
 */
import type { AuditNote, Conversation, ReplyEnd, ReplyPart } from "@mortise/capture";
import type { MortiseError } from "@mortise/contracts";

export type { AuditNote };

export type DialectName = "openai-chat" | "openai-responses" | "anthropic-messages";

/** What the harness asked for; recorded, while the policy decides what is applied (C8). */
export interface RequestedSampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly maxTokens?: number;
}

export type ToolChoice =
  | { readonly mode: "auto" | "none" | "required" }
  | { readonly mode: "tool"; readonly name: string };

/** How a call of a tool is written back, where the wire name differs from the name the policy sees. */
export interface ToolTarget {
  readonly name: string;
  readonly namespace: string | undefined;
  /** A custom tool takes one raw text, which the policy writes as the argument `input`. */
  readonly isCustom: boolean;
}

/** One model call, whatever protocol it came by. */
export interface ModelRequest {
  readonly dialect: DialectName;
  /** Normalised (packages/capture). */
  readonly conversation: Conversation;
  readonly toolChoice: ToolChoice;
  /** Types of hosted tools that were offered and ignored. */
  readonly hostedTools: readonly string[];
  /** Tools whose wire name or kind differs, by the name the policy sees. */
  readonly toolTargets: ReadonlyMap<string, ToolTarget>;
  /** Name the harness asked for; echoed back, whatever it is. */
  readonly model: string | undefined;
  readonly isStream: boolean;
  /** Whether the policy may think before it answers; undefined when the request does not say. */
  readonly wantsReasoning: boolean | undefined;
  readonly stopSequences: readonly string[];
  readonly requested: RequestedSampling;
  readonly audit: readonly AuditNote[];
  /** Chat Completions only: a usage chunk at the end of the stream. */
  readonly wantsUsage: boolean;
  /** Asked-for token ids and log-probabilities of the reply, beside its text. */
  readonly wantsTokens: boolean;
  /** Chat Completions only: which of them. */
  readonly tokenFields?: readonly TokenField[];
}

export type TokenField = "token_ids" | "logprobs";

export interface ReplyHead {
  /** Names the reply; unique in the session, `[A-Za-z0-9_-]+`. */
  readonly turn: string;
  readonly model: string;
  /** Milliseconds since the epoch. */
  readonly createdMs: number;
}

/** Ids and log-probabilities of a whole reply, for clients that asked. */
export interface ReplyTokens {
  readonly promptIds: Int32Array;
  readonly ids: Int32Array;
  /** Undefined when the engine gave none (C10). */
  readonly logProbabilities: Float32Array | undefined;
}

/** Writes one reply. Stream methods return complete server-sent events, in the order they are called. */
export interface ReplyWriter {
  /** Sent at once, before anything is sampled. `promptTokens` when it is known by then. */
  opening(promptTokens: number): string;
  parts(parts: readonly ReplyPart[]): string;
  /** A real event that changes nothing: comments do not reset every client's idle timer. */
  keepAlive(): string;
  /** The final events; only after the turn is on the stream (C3). */
  ending(end: ReplyEnd, tokens?: ReplyTokens): string;
  /** The last event of a stream that fails after it began. */
  failing(error: MortiseError): string;
  /** The body of a reply that is not streamed. */
  whole(parts: readonly ReplyPart[], end: ReplyEnd, tokens?: ReplyTokens): string;
}

/** A refusal before the reply began. */
export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Dialect {
  readonly name: DialectName;
  /** @throws MortiseError MORTISE_PROVIDER_BAD_REQUEST naming the field; never anything else, for any JSON */
  read(body: unknown): ModelRequest;
  writer(head: ReplyHead, request: ModelRequest): ReplyWriter;
  /** Status, headers and body that make this protocol's clients do the right thing: compact, retry, stop. */
  refuse(error: MortiseError, requestId: string): Refusal;
}
