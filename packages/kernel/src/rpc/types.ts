/**
 * Owns the shapes of a service implementation and of a client, derived from a protobuf-es service.
 * Does not carry calls (see server.ts, client.ts). Only unary and server-streaming methods exist here: longer
 * conversations belong on NATS.
 */
import type {
  DescMessage,
  DescMethod,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";

/** What a handler knows about its call. */
export interface CallContext {
  /** Aborted when the caller cancels or its deadline passes. */
  readonly signal: AbortSignal;
  /** Milliseconds until the caller's deadline; Infinity without one. */
  remainingMs(): number;
  readonly metadata: ReadonlyMap<string, string>;
}

/** Overrides for one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Infinity for a stream that has no natural end. */
  readonly deadlineMs?: number;
}

type InitOf<D> = D extends DescMessage ? MessageInitShape<D> : never;
type ShapeOf<D> = D extends DescMessage ? MessageShape<D> : never;
type MethodsOf<S extends DescService> = S["method"];

type Handler<M extends Pick<DescMethod, "input" | "output" | "methodKind">> = M["methodKind"] extends "unary"
  ? (request: ShapeOf<M["input"]>, context: CallContext) => Promise<InitOf<M["output"]>>
  : M["methodKind"] extends "server_streaming"
    ? (request: ShapeOf<M["input"]>, context: CallContext) => AsyncIterable<InitOf<M["output"]>>
    : never;

export type Handlers<S extends DescService> = { [K in keyof MethodsOf<S>]: Handler<MethodsOf<S>[K]> };

type Call<M extends Pick<DescMethod, "input" | "output" | "methodKind">> = M["methodKind"] extends "unary"
  ? (request: InitOf<M["input"]>, options?: CallOptions) => Promise<ShapeOf<M["output"]>>
  : M["methodKind"] extends "server_streaming"
    ? (request: InitOf<M["input"]>, options?: CallOptions) => AsyncIterable<ShapeOf<M["output"]>>
    : never;

/** One function per method, and `close` for the connection. */
export type Client<S extends DescService> = { [K in keyof MethodsOf<S>]: Call<MethodsOf<S>[K]> } & {
  close(): void;
};

/** A service with its handlers, ready for a server. */
export interface ServiceBinding {
  readonly service: DescService;
  readonly handlers: Readonly<Record<string, unknown>>;
}
