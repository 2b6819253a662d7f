/**
 * Owns a reply as a harness gets it: parts that grow while the engine samples, one end, and who is listening.
 * A reply outlives its connections: when one breaks, sampling goes on, and a retry of the same body joins
 * here or is answered from the captured turn (C6). Does not write sockets or wire formats.
 */
import { createHash } from "node:crypto";
import { unpackIds } from "@mortise/capture";
import {
  Delivery,
  type FinishReason,
  type MortiseError,
  type SampledToolCall,
  type Turn,
} from "@mortise/contracts";
import { ReplyParser, type ReplyPart, type ReplySyntax } from "../tools/reply-parser.js";
import type { ParsedCall } from "../tools/types.js";

export type IdentifiedPart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "call"; readonly id: string; readonly call: ParsedCall; readonly tokenEnd: number };

export interface ReplyEnd {
  readonly finish: FinishReason;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** One HTTP connection's hold on a reply. It ends with the first of `delivered` and `lost`. */
export interface Connection {
  readonly reply: Reply;
  /** Told whenever `reply.parts` has grown. */
  listen(onParts: () => void): void;
  /** The final event was handed over. */
  delivered(): void;
  /** The connection ended before that. */
  lost(): void;
}

/** Parses sampled ids and gives calls their ids; collects what the turn record says of the reply. */
export class ReplyBuilder {
  text = "";
  readonly calls: Omit<SampledToolCall, "$typeName">[] = [];
  private readonly parser: ReplyParser;
  private readonly turn: string;

  constructor(syntax: ReplySyntax, turn: string) {
    this.parser = new ReplyParser(syntax);
    this.turn = turn;
  }

  push(ids: Iterable<number>): IdentifiedPart[] {
    return this.identify(this.parser.push(ids));
  }

  end(): IdentifiedPart[] {
    return this.identify(this.parser.end());
  }

  private identify(parts: readonly ReplyPart[]): IdentifiedPart[] {
    return parts.map((part) => {
      if (part.kind === "text") {
        this.text += part.text;
        return part;
      }
      const id = callId(this.turn, this.calls.length, part.call);
      this.calls.push({ id, name: part.call.name, tokenEnd: part.tokenEnd });
      return { ...part, id };
    });
  }
}

/**
 * Unique in a session even when a turn that was never recorded is sampled again under its number, and the
 * same for the same call, so a reply rebuilt from the journal repeats it. Letters, digits, '-' and '_' only.
 */
function callId(turn: string, ordinal: number, call: ParsedCall): string {
  const hash = createHash("sha256").update(JSON.stringify([turn, ordinal, call.name, call.arguments]));
  return `call_${hash.digest("base64url").slice(0, 20)}`;
}

export class Reply {
  readonly turn: string;
  readonly bodyDigest: Uint8Array;
  /** Everything said so far. */
  readonly parts: IdentifiedPart[] = [];
  /** Resolves once the turn is on the stream (C3); rejects with what the harness is told. */
  readonly ended: Promise<ReplyEnd>;
  /** Bytes handed to sockets so far, over all connections. */
  bytesDelivered = 0;
  private connections = 0;
  private isDelivered = false;
  private readonly listeners = new Set<() => void>();
  private settle!: { resolve(end: ReplyEnd): void; reject(error: MortiseError): void };

  constructor(turn: string, bodyDigest: Uint8Array) {
    this.turn = turn;
    this.bodyDigest = bodyDigest;
    this.ended = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    // A reply whose connections are gone may fail with nobody waiting.
    this.ended.catch(() => {});
  }

  /** A finished reply, word for word, from its record. Undecided until it is delivered again. */
  static fromTurn(turn: Turn, syntax: ReplySyntax, promptTokens: number): Reply {
    const reply = new Reply(turn.turn, turn.bodyDigest);
    const builder = new ReplyBuilder(syntax, turn.turn);
    const ids = unpackIds(turn.sampledIds);
    reply.say([...builder.push(ids), ...builder.end()]);
    reply.end({ finish: turn.finish, promptTokens, completionTokens: ids.length });
    return reply;
  }

  say(parts: readonly IdentifiedPart[]): void {
    if (parts.length === 0) return;
    this.parts.push(...parts);
    for (const listener of this.listeners) listener();
  }

  end(end: ReplyEnd): void {
    this.settle.resolve(end);
  }

  fail(error: MortiseError): void {
    this.settle.reject(error);
  }

  /** A connection takes the reply, from its first part on. */
  connect(): Connection {
    this.connections++;
    let onParts: (() => void) | undefined;
    let isOpen = true;
    const leave = (isDelivered: boolean) => {
      if (!isOpen) return;
      isOpen = false;
      this.connections--;
      this.isDelivered ||= isDelivered;
      if (onParts) this.listeners.delete(onParts);
    };
    return {
      reply: this,
      listen: (listener) => {
        onParts = listener;
        this.listeners.add(listener);
      },
      delivered: () => leave(true),
      lost: () => leave(false),
    };
  }

  /** Whether the same body may be answered with this reply: nobody has it and nobody is getting it (C6). */
  get isOrphaned(): boolean {
    return this.connections === 0 && !this.isDelivered;
  }

  get delivery(): Delivery {
    if (this.isDelivered) return Delivery.DELIVERED;
    return this.connections > 0 ? Delivery.UNDECIDED : Delivery.ABANDONED;
  }
}
