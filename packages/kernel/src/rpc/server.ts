/**
 * Owns the gRPC server of a service: bindings, bearer, deadlines as signals, health, reflection, errors as
 * status with a stable code. Does not contain any method.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedHandleCall,
} from "@grpc/grpc-js";
import { MortiseError } from "@mortise/contracts";
import { HealthImplementation } from "grpc-health-check";
import { continueTrace, TRACE_PARENT } from "../telemetry.js";
import { requireBearer } from "./bearer.js";
import { CHANNEL_OPTIONS } from "./channel-options.js";
import { methodDefinition } from "./codec.js";
import { reflectionOf } from "./reflection.js";
import { toStatus } from "./status.js";
import type { CallContext, Handlers, ServiceBinding } from "./types.js";

type UnaryCall = ServerUnaryCall<unknown, unknown>;
type StreamCall = ServerWritableStream<unknown, unknown>;

/** Joins a service with its handlers; the compiler checks that every method is there. */
export function implement<S extends DescService>(service: S, handlers: Handlers<S>): ServiceBinding {
  return { service, handlers };
}

export interface RpcServerOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly bearer: string;
  readonly bindings: readonly ServiceBinding[];
}

export class RpcServer {
  /** Where clients connect: "host:port". */
  readonly address: string;
  readonly port: number;
  readonly #server: Server;
  readonly #health: HealthImplementation;
  readonly #serviceNames: readonly string[];

  private constructor(
    address: string,
    server: Server,
    health: HealthImplementation,
    names: readonly string[],
  ) {
    this.address = address;
    this.port = Number(address.slice(address.lastIndexOf(":") + 1));
    this.#server = server;
    this.#health = health;
    this.#serviceNames = names;
  }

  /** Binds and serves. Throws MORTISE_OPERATOR_PORT_IN_USE when the address is taken or not ours. */
  static async start(options: RpcServerOptions): Promise<RpcServer> {
    const server = new Server({ ...CHANNEL_OPTIONS, interceptors: [requireBearer(options.bearer)] });
    const services = options.bindings.map((binding) => binding.service);
    for (const binding of options.bindings) addBinding(server, binding);
    const names = ["", ...services.map((service) => service.typeName)];
    const health = new HealthImplementation(Object.fromEntries(names.map((name) => [name, "SERVING"])));
    health.addToServer(server);
    reflectionOf(services).addToServer(server);
    const port = await bind(server, options.host, options.port);
    return new RpcServer(`${options.host}:${port}`, server, health, names);
  }

  /** Announces NOT_SERVING, lets running calls end for up to `graceMs`, then cuts the rest. */
  async stop(graceMs = 5_000): Promise<void> {
    for (const name of this.#serviceNames) this.#health.setStatus(name, "NOT_SERVING");
    const cut = setTimeout(() => this.#server.forceShutdown(), graceMs);
    await new Promise<void>((resolve) => this.#server.tryShutdown(() => resolve()));
    clearTimeout(cut);
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (cause, bound) => {
      if (cause === null) {
        resolve(bound);
        return;
      }
      reject(
        new MortiseError({
          code: "MORTISE_OPERATOR_PORT_IN_USE",
          message: `rpc.port ${port} on ${host}: ${cause.message}.`,
          detail: { field: "rpc.port", host, port },
          cause,
        }),
      );
    });
  });
}

function addBinding(server: Server, binding: ServiceBinding): void {
  for (const method of binding.service.methods) {
    const handler = binding.handlers[method.localName];
    const definition = methodDefinition(method);
    const isStream = method.methodKind === "server_streaming";
    server.register(
      definition.path,
      (isStream ? streamHandler(method, handler) : unaryHandler(method, handler)) as UntypedHandleCall,
      definition.responseSerialize,
      definition.requestDeserialize,
      isStream ? "serverStream" : "unary",
    );
  }
}

function unaryHandler(method: DescMethod, handler: unknown) {
  const handle = handler as (request: unknown, context: CallContext) => Promise<unknown>;
  return (call: UnaryCall, reply: sendUnaryData<unknown>): void => {
    const { context, settle } = callContext(call);
    inTrace(call.metadata, () => handle(call.request, context))
      .then(
        (response) => reply(null, response),
        (error: unknown) => reply(toStatus(error, method)),
      )
      .finally(settle);
  };
}

function streamHandler(method: DescMethod, handler: unknown) {
  const handle = handler as (request: unknown, context: CallContext) => AsyncIterable<unknown>;
  return (call: StreamCall): void => {
    const { context, settle } = callContext(call);
    inTrace(call.metadata, async () => {
      for await (const message of handle(call.request, context)) {
        if (context.signal.aborted) return;
        // A slow reader holds the producer back here instead of in memory.
        if (!call.write(message)) await drained(call, context.signal);
      }
    })
      .then(
        () => call.end(),
        (error: unknown) => call.emit("error", toStatus(error, method)),
      )
      .finally(settle);
  };
}

function inTrace<T>(metadata: Metadata, fn: () => Promise<T>): Promise<T> {
  const [traceParent] = metadata.get(TRACE_PARENT);
  // A handler that throws before its first await must look like one that rejects.
  return continueTrace(traceParent?.toString(), async () => fn());
}

function drained(call: StreamCall, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const proceed = () => {
      call.off("drain", proceed);
      signal.removeEventListener("abort", proceed);
      resolve();
    };
    call.once("drain", proceed);
    signal.addEventListener("abort", proceed, { once: true });
  });
}

function callContext(call: UnaryCall | StreamCall): { context: CallContext; settle: () => void } {
  const controller = new AbortController();
  call.on("cancelled", () => controller.abort());
  const deadline = call.getDeadline();
  const deadlineAt = deadline instanceof Date ? deadline.getTime() : deadline;
  const context: CallContext = {
    signal: controller.signal,
    remainingMs: () => Math.max(0, deadlineAt - Date.now()),
    get metadata() {
      return new Map(Object.entries(call.metadata.getMap()).map(([key, value]) => [key, value.toString()]));
    },
  };
  // grpc-js cancels a call whose deadline passed, and "cancelled" then aborts the signal.
  return { context, settle: () => call.removeAllListeners("cancelled") };
}
