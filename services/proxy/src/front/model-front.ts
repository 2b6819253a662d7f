/**
 * Owns the model API's HTTP server: routes, session tokens, request bodies. Everything a sandbox can reach of
 * Mortise is here. Answers 401 to anything it does not know, without a word about why.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { MortiseError } from "@mortise/contracts";
import { chatDialect } from "@mortise/dialects";
import { type Clock, fromUnknown, type Log } from "@mortise/kernel";
import type { ProxyMetrics } from "../metrics.js";
import type { Sessions } from "../session/sessions.js";
import type { SessionTerms, SessionTokens } from "../session/token.js";
import { readJsonBody } from "./body.js";
import { deliverStream, deliverWhole } from "./deliver.js";

/** Agents replay whole histories with tool output in them. */
const BODY_LIMIT_BYTES = 32 * 1024 * 1024;
/** Longest a client may take to send a request. */
const REQUEST_TIMEOUT_MS = 120_000;
/** After a restart weights are loaded in moments: waiting spares harnesses that retry a few times only. */
const ENGINE_PATIENCE_MS = 20_000;
/** Longer than the pools of common clients keep a socket, so that they close it, not we. */
const IDLE_SOCKET_MS = 90_000;

export interface FrontOptions {
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  readonly sessions: Sessions;
  readonly tokens: SessionTokens;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ProxyMetrics;
}

export class ModelFront {
  readonly port: number;
  private readonly options: FrontOptions;
  private readonly server: Server;
  private isDraining = false;

  private constructor(options: FrontOptions, server: Server) {
    this.options = options;
    this.server = server;
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
    this.server.closeIdleConnections();
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.route(request, response);
    } catch (error) {
      this.refuse(response, fromUnknown(error, "MORTISE_PROVIDER_ENGINE"));
    }
  }

  private async route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0]!;
    if (request.method === "HEAD") {
      response.writeHead(200).end();
      return;
    }
    const terms = this.authenticate(request);
    if (this.isDraining) throw stopping();
    if (request.method === "POST" && path.endsWith("/chat/completions"))
      return this.complete(request, response, terms);
    if (request.method === "GET" && /\/models(\/[^/]+)?$/.test(path))
      return this.models(path, response, terms);
    const body = {
      error: { message: "Not found.", type: "invalid_request_error", param: null, code: "not_found" },
    };
    answer(response, 404, body);
  }

  private authenticate(request: IncomingMessage): SessionTerms {
    const [, token] = /^Bearer\s+(\S+)\s*$/i.exec(request.headers.authorization ?? "") ?? [];
    const terms = token === undefined ? undefined : this.options.tokens.verify(token);
    if (terms) return terms;
    throw new MortiseError({ code: "MORTISE_PROVIDER_UNAUTHORIZED", message: "Incorrect API key provided." });
  }

  private async complete(
    request: IncomingMessage,
    response: ServerResponse,
    terms: SessionTerms,
  ): Promise<void> {
    const { sessions, clock } = this.options;
    const session = await sessions.obtain(terms, ENGINE_PATIENCE_MS);
    const chat = chatDialect.read(await readJsonBody(request, BODY_LIMIT_BYTES));
    const connection = await session.ask(chat);
    if (response.destroyed) {
      connection.lost();
      return;
    }
    const head = {
      turn: connection.reply.turn,
      model: chat.model ?? session.modelName,
      createdMs: clock.now(),
    };
    const delivery = { response, connection, dialect: chatDialect, writer: chatDialect.writer(head, chat) };
    if (!chat.isStream) return deliverWhole(delivery);
    return deliverStream(delivery, clock);
  }

  private async models(path: string, response: ServerResponse, terms: SessionTerms): Promise<void> {
    const session = await this.options.sessions.obtain(terms, ENGINE_PATIENCE_MS);
    const asked = /\/models\/([^/]+)$/.exec(path)?.[1];
    const model = {
      id: asked === undefined ? session.modelName : decoded(asked),
      object: "model",
      created: 0,
      owned_by: "mortise",
    };
    answer(response, 200, asked === undefined ? { object: "list", data: [model] } : model);
  }

  private refuse(response: ServerResponse, error: MortiseError): void {
    this.options.metrics.refused.inc({ code: error.code });
    if (error.boundary !== "provider") this.options.log.error({ event: "request.failed", err: error });
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const { status, headers, body } = chatDialect.refuse(error, "");
    // The rest of an unread body would be taken for the next request.
    response.writeHead(status, { ...headers, "content-type": "application/json", connection: "close" });
    response.end(body);
  }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_PROVIDER_BAD_REQUEST",
      message: "The model's name is not percent-encoded text.",
      cause,
      detail: { field: "model" },
    });
  }
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
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
