/** Owns the shapes callers of the bus see. */
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Log } from "../log.js";

export interface BusOptions {
  readonly url: string;
  readonly user: string;
  readonly password: string;
  /** Shown in the server's connection list. */
  readonly name: string;
  readonly log: Log;
  /** Lowest JetStream API level accepted; 2 is nats-server 2.12. */
  readonly minApiLevel?: number;
  /** How long the first connection is tried, milliseconds. */
  readonly connectTimeoutMs?: number;
  /** Told of errors nobody awaits: a follower whose handler threw. Logs by default. */
  readonly onFault?: (error: unknown) => void;
}

/** Facts of a delivered message. */
export interface Meta {
  readonly subject: string;
  readonly sequence: number;
  /** 1 at the first delivery. */
  readonly deliveries: number;
  readonly headers: MsgHdrs | undefined;
  /** Restarts the acknowledgement wait; done automatically at a third of it while a handler runs. */
  working(): void;
  /** Aborted when the consumer stops and its grace is over. */
  readonly signal: AbortSignal;
}

export interface PublishOptions<D extends DescMessage> {
  readonly subject: string;
  readonly schema: D;
  readonly message: MessageInitShape<D> | MessageShape<D>;
  /** Deterministic: the same fact always has the same id, so that saying it twice stores it once. */
  readonly dedupeId: string;
  /** Sequence of the last message on this subject as the writer knows it; 0 for none. */
  readonly expectLastSubjectSequence?: number;
  /** Longest outage to ride out before the caller is told, milliseconds; a minute unless given. */
  readonly patienceMs?: number;
}

export interface Published {
  readonly sequence: number;
  /** True if the stream held a message with this id already; `sequence` is then its sequence. */
  readonly duplicate: boolean;
}

/** One type for the whole stream, or one by subject. */
export type SchemaOf<D extends DescMessage> = D | ((subject: string) => D);

export interface ConsumeOptions<D extends DescMessage> {
  readonly stream: string;
  readonly durable: string;
  readonly schema: SchemaOf<D>;
  /** Messages handled at once by this process. */
  readonly concurrency: number;
  handle(message: MessageShape<D>, meta: Meta): Promise<void>;
}

export interface Consuming {
  /**
   * Takes no more messages, gives back those not started, waits `graceMs` for those that are, then aborts their
   * signal and waits for them to return.
   */
  stop(graceMs?: number): Promise<void>;
}

export interface FollowOptions<D extends DescMessage> {
  readonly stream: string;
  readonly filters: readonly string[];
  readonly from: "first" | "new" | { readonly sequence: number };
  readonly schema: SchemaOf<D>;
  /** Called for one message at a time, in stream order. */
  onMessage(message: MessageShape<D>, meta: Meta): void | Promise<void>;
  readonly onFault?: (error: unknown) => void;
}

export interface Following {
  /** Resolves when everything stored at the start has been handled; never if a handler threw before. */
  readonly caughtUp: Promise<void>;
  stop(): Promise<void>;
}
