/**
 * Owns a reply as a harness gets it: parts that grow while the engine samples, one end, and who is listening.
 * A reply outlives its connections: when one breaks, sampling goes on, and a retry of the same body joins
 * here or is answered from the captured turn (C6). Does not write sockets or wire formats.
 */
import { type ReplyEnd, type ReplyPart, type SampledPart, unpackIds } from "@mortise/capture";
import { Delivery, type MortiseError, type Turn } from "@mortise/contracts";
import { type ReplyNote, ReplyParser, type ReplySyntax } from "@mortise/rendering";

/** One HTTP connection's hold on a reply. It ends with the first of `delivered` and `lost`. */
export interface Connection {
  readonly reply: Reply;
  /** Told whenever `reply.parts` has grown. */
  listen(onParts: () => void): void;
  /** The final event was handed over. */
  delivered(): void;
  /** The connection ended before that. */
  lost(): void;
  readonly isDelivered: boolean;
}

/** What is known of a call once it is parsed. */
export interface BuiltCall {
  readonly id: string;
  readonly name: string;
  readonly tokenStart: number | undefined;
  /** 0 until its end was sampled. */
  tokenEnd: number;
  arguments: string;
}

/** Parses sampled ids and gives calls their ids; collects what the turn record says of the reply. */
export class ReplyBuilder {
  text = "";
  readonly calls: BuiltCall[] = [];
  private readonly parser: ReplyParser;
  private readonly idOf: (call: number) => string;

  /** @param idOf the id of a call by its ordinal in the turn */
  constructor(syntax: ReplySyntax, idOf: (call: number) => string) {
    this.parser = new ReplyParser(syntax);
    this.idOf = idOf;
  }

  push(ids: Iterable<number>): ReplyPart[] {
    return this.identify(this.parser.push(ids));
  }

  end(): ReplyPart[] {
    return this.identify(this.parser.end());
  }

  /** Ids inside reasoning so far. */
  get reasoningTokens(): number {
    return this.parser.reasoningTokens;
  }

  /** What the parser noticed that the parts do not tell. */
  get notes(): readonly ReplyNote[] {
    return this.parser.notes;
  }

  private identify(parts: readonly SampledPart[]): ReplyPart[] {
    return parts.map((part) => {
      if (part.kind === "text") this.text += part.text;
      if (part.kind === "call-arguments") this.calls[part.call]!.arguments += part.text;
      if (part.kind === "call-end") this.calls[part.call]!.tokenEnd = part.tokenEnd;
      if (part.kind !== "call-start") return part;
      const id = this.idOf(part.call);
      this.calls.push({ id, name: part.name, tokenStart: part.tokenStart, tokenEnd: 0, arguments: "" });
      return { ...part, id };
    });
  }
}

export class Reply {
  readonly turn: string;
  /** Tokens of the whole context it is sampled under. */
  readonly promptTokens: number;
  /** Everything said so far. */
  readonly parts: ReplyPart[] = [];
  /** Resolves once nothing more will be said: what is left is storing it. */
  readonly sampled: Promise<void>;
  /** Resolves once the turn is on the stream (C3); rejects with what the harness is told. */
  readonly ended: Promise<ReplyEnd>;
  /** Of the sampled ids, those inside reasoning; known once everything is sampled. */
  reasoningTokens = 0;
  /** Bytes handed to sockets so far, over all connections. */
  bytesDelivered = 0;
  /** Told when the last connection was lost before the reply was delivered. */
  onOrphaned: () => void = () => {};
  private connections = 0;
  private isDelivered = false;
  private readonly listeners = new Set<() => void>();
  private readonly settle: PromiseWithResolvers<ReplyEnd>;
  private readonly sampling: PromiseWithResolvers<void>;

  constructor(turn: string, promptTokens: number) {
    this.turn = turn;
    this.promptTokens = promptTokens;
    this.sampling = Promise.withResolvers();
    this.sampled = this.sampling.promise;
    this.settle = Promise.withResolvers();
    this.ended = this.settle.promise;
    // A reply whose connections are gone may fail with nobody waiting.
    this.ended.catch(() => {});
  }

  /** A finished reply, word for word, from its record. Undecided until it is delivered again. */
  static fromTurn(turn: Turn, syntax: ReplySyntax, promptTokens: number): Reply {
    const reply = new Reply(turn.turn, promptTokens);
    const builder = new ReplyBuilder(syntax, (call) => turn.toolCalls[call]!.id);
    const ids = unpackIds(turn.sampledIds);
    reply.say([...builder.push(ids), ...builder.end()]);
    reply.end({
      finish: turn.finish,
      promptTokens,
      cachedTokens: turn.prefixLength,
      completionTokens: ids.length,
      reasoningTokens: builder.reasoningTokens,
    });
    return reply;
  }

  /** What was said, without reasoning and calls. */
  get text(): string {
    return this.parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
  }

  say(parts: readonly ReplyPart[]): void {
    if (parts.length === 0) return;
    this.parts.push(...parts);
    for (const listener of this.listeners) listener();
  }

  /** Nothing more will be said. */
  close(): void {
    this.sampling.resolve();
  }

  end(end: ReplyEnd): void {
    this.close();
    this.settle.resolve(end);
  }

  fail(error: MortiseError): void {
    this.close();
    this.settle.reject(error);
  }

  /** A connection takes the reply, from its first part on. */
  connect(): Connection {
    this.connections++;
    let onParts: (() => void) | undefined;
    let isOpen = true;
    let isDelivered = false;
    const leave = (wasDelivered: boolean) => {
      if (!isOpen) return;
      isOpen = false;
      this.connections--;
      isDelivered = wasDelivered;
      this.isDelivered ||= wasDelivered;
      if (onParts) this.listeners.delete(onParts);
      if (this.isOrphaned) this.onOrphaned();
    };
    return {
      reply: this,
      listen: (listener) => {
        onParts = listener;
        this.listeners.add(listener);
      },
      delivered: () => leave(true),
      lost: () => leave(false),
      get isDelivered() {
        return isDelivered;
      },
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
