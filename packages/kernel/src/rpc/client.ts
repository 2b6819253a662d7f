/**
 * Owns the client side of a call: bearer, deadline, cancellation, and turning a failed status back into the
 * MortiseError the handler threw. Does not retry: only the caller knows what is idempotent.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  credentials,
  type CallOptions as GrpcCallOptions,
  Client as GrpcClient,
  type ServiceError,
} from "@grpc/grpc-js";
import { callMetadata } from "./bearer.js";
import { CHANNEL_OPTIONS } from "./channel-options.js";
import { methodDefinition } from "./codec.js";
import { fromStatus } from "./status.js";
import type { CallOptions, Client } from "./types.js";

/** A call that is not done by then is one that NATS should have carried. */
const DEFAULT_DEADLINE_MS = 30_000;

export interface RpcClientOptions {
  readonly bearer: string;
  readonly deadlineMs?: number;
}

/**
 * A client for `service` at "host:port". It connects at the first call and reconnects by itself.
 * Every call rejects with a MortiseError: the one the handler threw, or a transport error.
 */
export function rpcClient<S extends DescService>(
  service: S,
  address: string,
  options: RpcClientOptions,
): Client<S> {
  const channel = new GrpcClient(address, credentials.createInsecure(), CHANNEL_OPTIONS);
  const caller = new Caller(channel, address, options);
  const client: Record<string, unknown> = { close: () => channel.close() };
  for (const method of service.methods) {
    client[method.localName] =
      method.methodKind === "server_streaming"
        ? (request: unknown, call?: CallOptions) => caller.stream(method, request, call)
        : (request: unknown, call?: CallOptions) => caller.unary(method, request, call);
  }
  return client as Client<S>;
}

class Caller {
  readonly #channel: GrpcClient;
  readonly #address: string;
  readonly #options: RpcClientOptions;

  constructor(channel: GrpcClient, address: string, options: RpcClientOptions) {
    this.#channel = channel;
    this.#address = address;
    this.#options = options;
  }

  unary(method: DescMethod, request: unknown, options: CallOptions = {}): Promise<unknown> {
    const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
    return new Promise((resolve, reject) => {
      const call = this.#channel.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        callMetadata(this.#options.bearer),
        this.#deadline(options),
        (error, response) => {
          options.signal?.removeEventListener("abort", cancel);
          if (error === null) resolve(response);
          else reject(this.#failure(error, method));
        },
      );
      const cancel = () => call.cancel();
      if (options.signal?.aborted) cancel();
      else options.signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  async *stream(method: DescMethod, request: unknown, options: CallOptions = {}): AsyncIterable<unknown> {
    const { path, requestSerialize, responseDeserialize } = methodDefinition(method);
    const call = this.#channel.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      callMetadata(this.#options.bearer),
      this.#deadline(options),
    );
    const cancel = () => call.cancel();
    if (options.signal?.aborted) cancel();
    else options.signal?.addEventListener("abort", cancel, { once: true });
    try {
      for await (const message of call) yield message;
    } catch (error) {
      throw this.#failure(error as ServiceError, method);
    } finally {
      options.signal?.removeEventListener("abort", cancel);
      cancel(); // a reader that leaves early ends the call at the server too
    }
  }

  #deadline(options: CallOptions): GrpcCallOptions {
    const deadlineMs = options.deadlineMs ?? this.#options.deadlineMs ?? DEFAULT_DEADLINE_MS;
    return { deadline: deadlineMs === Infinity ? Infinity : Date.now() + deadlineMs };
  }

  #failure(error: ServiceError, method: DescMethod): Error {
    return fromStatus(error, `${method.parent.name}.${method.name} at ${this.#address}`);
  }
}
