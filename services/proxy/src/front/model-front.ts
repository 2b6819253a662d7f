/**
 * Owns the model API's HTTP server and the way of one request through it: route, session token, body, reply or
 * refusal. Everything a sandbox can reach of Mortise is here. Routes are routes.ts, tokens authentication.ts.
 *
 * H1  A refusal has the shape of the protocol of its path, says what the client did wrong, and of our side
 *     nothing but whether to try again.
 * H2  Every answer has a request id; the log has it beside what went wrong.
 */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { MortiseError } from "@mortise/contracts";
import { tokenCountBody } from "@mortise/dialects";
import { type Clock, fromUnknown, type Log } from "@mortise/kernel";
import type { ProxyMetrics } from "../metrics.js";
import type { ListenerKeys } from "../session/listener-key.js";
import type { Session } from "../session/session.js";
import type { Sessions } from "../session/sessions.js";
import type { SessionTerms, SessionTokens } from "../session/token.js";
import { authenticate, requireOwnListener } from "./authentication.js";
import type { Bodies } from "./body.js";
import { deliverStream, deliverWhole } from "./deliver.js";
import { Listeners } from "./listeners.js";
import { answerAlive, answerModel, answerModels, answerTelemetry, discard, refuseUpgrade } from "./probes.js";
import { type Target, target } from "./routes.js";

/** Of a refused body, this much more is taken so that the client gets to read why. */
const DISCARD_LIMIT_BYTES = 128 * 1024 * 1024;
/** Longest a client may take to send a request; how long the answer takes is another matter. */
const REQUEST_TIMEOUT_MS = 120_000;
/** After a restart weights are loaded in moments: waiting spares harnesses that retry a few times only. */
const ENGINE_PATIENCE_MS = 20_000;
/** Longer than the pools of common clients keep a socket, so that they close it, not we. */
const IDLE_SOCKET_MS = 90_000;
/** What is being sent when the front stops may still arrive. */
const STOP_GRACE_MS = 2_000;

export interface FrontOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly sessions: Sessions;
  readonly tokens: SessionTokens;
  readonly listenerKeys: ListenerKeys;
  readonly bodies: Bodies;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ProxyMetrics;
}

interface Exchange extends Target {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly requestId: string;
}

export class ModelFront {
  readonly port: number;
  private readonly options: FrontOptions;
  private readonly server: Server;
  private readonly listeners: Listeners;
  private isDraining = false;

  private constructor(options: FrontOptions, server: Server) {
    this.options = options;
    this.server = server;
    this.listeners = new Listeners(server, options.listenerKeys);
    this.port = (server.address() as AddressInfo).port;
    server.on("request", (request, response) => void this.serve(request, response));
  }

  /** @throws MortiseError MORTISE_OPERATOR_PORT_IN_USE */
  static async start(options: FrontOptions): Promise<ModelFront> {
    const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: IDLE_SOCKET_MS });
    await listen(server, options.host, options.port);
    return new ModelFront(options, server);
  }

  /** New requests are told to come again; those under way go on. */
  drain(): void {
    this.isDraining = true;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.listeners.close();
    const cancel = this.options.clock.after(STOP_GRACE_MS, () => this.server.closeAllConnections());
    await closed;
    cancel();
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const headers = singleHeaders(request);
    const requestId = `req_${randomUUID().replaceAll("-", "")}`;
    response.setHeader("request-id", requestId); // H2
    response.setHeader("x-request-id", requestId);
    const found = target({ method: request.method ?? "", url: request.url ?? "", headers });
    const exchange = { ...found, request, response, headers, requestId };
    try {
      await this.route(exchange);
    } catch (error) {
      this.refuse(exchange, fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL"));
    }
  }

  private async route(exchange: Exchange): Promise<void> {
    const { route, request, response } = exchange;
    if (route.kind === "alive") return answerAlive(response);
    if (route.kind === "telemetry") return answerTelemetry(request, response);
    if (route.kind === "upgrade") return refuseUpgrade(response);
    const session = await this.sessionOf(exchange);
    const isAnthropic = exchange.headers["anthropic-version"] !== undefined;
    switch (route.kind) {
      case "model-call":
        return this.complete(exchange, session);
      case "count-tokens":
        return this.countTokens(exchange, session);
      case "models":
        return answerModels(response, session.modelName, isAnthropic);
      case "model":
        return answerModel(response, route.name, isAnthropic);
      default:
        throw notFound();
    }
  }

  private async sessionOf(exchange: Exchange): Promise<Session> {
    const { sessions, tokens } = this.options;
    const terms = authenticate(tokens, exchange);
    this.requireListener(exchange, terms);
    if (this.isDraining) throw stopping();
    if (exchange.route.kind === "unknown") throw notFound();
    return sessions.obtain(terms, ENGINE_PATIENCE_MS);
  }

  /** Whoever tries another trial's token is told so and counted; both trials are in the log. */
  private requireListener({ request, requestId }: Exchange, terms: SessionTerms): void {
    const listener = this.listeners.of(request.socket);
    try {
      requireOwnListener(terms, listener);
    } catch (error) {
      const { run, trial } = terms;
      this.options.log.warn({ event: "token.elsewhere", requestId, run, trial, listener });
      throw error;
    }
  }

  private async complete(exchange: Exchange, session: Session): Promise<void> {
    const { request, response, headers, dialect } = exchange;
    const { bodies, clock, metrics } = this.options;
    const isConnected = () => !response.destroyed;
    const { call, connection } = await bodies.use(request, ownerOf(session), async (body) => {
      const call = dialect.read(body);
      return { call, connection: await session.ask({ request: call, headers, isConnected }) };
    });
    const { turn } = connection.reply;
    const head = { turn, model: call.model ?? session.modelName, createdMs: clock.now() };
    const isDelivered = await (call.isStream ? deliverStream : deliverWhole)(
      {
        response,
        connection,
        dialect,
        requestId: exchange.requestId,
        writer: dialect.writer(head, call),
        tokens: () => (call.wantsTokens ? session.tokensOf(turn) : undefined),
      },
      clock,
    );
    if (!isDelivered) metrics.undelivered.inc({ dialect: dialect.name });
  }

  private async countTokens({ request, response, headers, dialect }: Exchange, session: Session) {
    const count = await this.options.bodies.use(request, ownerOf(session), (body) =>
      session.countTokens({ request: dialect.read(body), headers }),
    );
    const body = tokenCountBody(count);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(body);
  }

  /** H1 */
  private refuse(exchange: Exchange, error: MortiseError): void {
    const { request, response, dialect, requestId } = exchange;
    this.options.metrics.refused.inc({ code: error.code, dialect: dialect.name });
    if (error.boundary !== "provider" && error.disposition !== "cancelled")
      this.options.log.error({ event: "request.failed", requestId, dialect: dialect.name, err: error });
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const { status, headers, body } = dialect.refuse(error, requestId);
    response.writeHead(status, {
      ...headers,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
    if (!request.complete) discard(request, DISCARD_LIMIT_BYTES);
  }
}

/** Repeated headers are joined, as HTTP says; names are lower-case already. */
function singleHeaders({ headers }: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value]),
  );
}

function ownerOf({ terms }: Session): string {
  return `${terms.run}/${terms.trial}`;
}

function notFound(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_NOT_FOUND", message: "There is nothing at this path." });
}

function stopping(): MortiseError {
  return new MortiseError({ code: "MORTISE_PROVIDER_ENGINE", message: "The proxy is stopping." });
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) =>
      reject(
        new MortiseError({
          code: "MORTISE_OPERATOR_PORT_IN_USE",
          message: `proxy.port: ${host}:${port}: ${cause.code}.`,
          cause,
          detail: { field: "proxy.port" },
        }),
      ),
    );
    server.listen(port, host, () => resolve());
  });
}
