/**
 * Owns the HTTP server of both fronts at one port: health and agent card for anyone, everything else for who may call.
 * Bodies are bounded before they are read. Does not know what an invocation is.
 */

import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { DefaultRequestHandler } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import type { AgentRuntimeConfig } from "@mortise/contracts";
import { fromUnknown, type Log } from "@mortise/kernel";
import express, { type ErrorRequestHandler } from "express";
import type { Invocations } from "../invocation/invocations.js";
import { InvocationExecutor } from "./a2a.js";
import { agentCard } from "./agent-card.js";
import { invoke, ping } from "./agentcore.js";
import { authorization } from "./authorization.js";
import { BoundedTaskStore } from "./task-store.js";

const KEEP_ALIVE_MS = 75_000;
const CARD_PATHS = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
/** v0.3 clients send no version header and other method names. */
const legacyCompat = { enabled: true };

export interface FrontOptions {
  readonly config: AgentRuntimeConfig;
  readonly invocations: Invocations;
  readonly log: Log;
}

export class Front {
  readonly #server: Server;
  readonly url: string;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  /** Listens before it knows its own address, and answers once it does. */
  static async start({ config, invocations, log }: FrontOptions): Promise<Front> {
    const app = express();
    app.disable("x-powered-by");
    // An idle connection that is closed while its other end sends looks like a lost invocation there.
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, app);
    const { host, port, publicUrl } = config.listen;
    const authorize = authorization(config);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, resolve);
    });
    const url = publicUrl ?? `http://${shownHost(host)}:${(server.address() as AddressInfo).port}`;
    const requestHandler = new DefaultRequestHandler(
      agentCard(url, Object.keys(config.harness)),
      new BoundedTaskStore(config.limits.maxRemembered),
      new InvocationExecutor(invocations),
    );
    app.get("/ping", ping(invocations, Date.now));
    for (const path of CARD_PATHS)
      app.use(path, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
    app.use(authorize, express.json({ limit: config.limits.maxBodyBytes, type: isJson }));
    app.post("/invocations", invoke(invocations));
    app.use("/", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
    app.use(refuse(log));
    return new Front(server, url);
  }

  /** Takes no new connection and lets what is being answered be heard, for so long. */
  async close(ms: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const timer = setTimeout(() => this.#server.closeAllConnections(), ms);
    await closed;
    clearTimeout(timer);
  }
}

function isJson({ headers }: IncomingMessage): boolean {
  return /^application\/(json|a2a\+json)\b/.test(headers["content-type"] ?? "");
}

/** What is no address to call. */
function shownHost(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

/** Bodies that are too long, or no JSON; and what nobody expected, without its words. */
function refuse(log: Log): ErrorRequestHandler {
  return (error: { status?: number; type?: string; message?: string }, _request, response, _next) => {
    const status = error.status ?? 500;
    if (status >= 500)
      log.error({ event: "front.failed", err: fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL") });
    const message = status >= 500 ? "This runtime failed." : (error.message ?? "The request is malformed.");
    response.status(status).json({ error: { code: "MORTISE_HARNESS_REMOTE_ANSWER", message } });
  };
}
