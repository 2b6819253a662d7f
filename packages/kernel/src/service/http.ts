/**
 * Owns the small HTTP server of a process: /healthz, /readyz, /metrics, /cpu. Shows no secret and changes nothing.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { MortiseError } from "@mortise/contracts";
import type { Metrics } from "../metrics.js";

export interface CpuAnswer {
  /** User and system time of this process, all threads, milliseconds. */
  readonly busyMs: number;
  /** Of ended children; absent where it cannot be known (C10). */
  readonly childrenMs?: number;
  /** Engine and trainer compute, part of `busyMs`. */
  readonly computeMs: number;
  readonly stages: Readonly<Record<string, number>>;
}

export interface StatusServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: Metrics;
  readonly isReady: () => boolean;
  readonly cpu: () => CpuAnswer;
}

export class StatusServer {
  readonly #server: Server;
  readonly port: number;

  private constructor(server: Server) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  /** Throws MORTISE_OPERATOR_PORT_IN_USE with the field. */
  static async start(options: StatusServerOptions): Promise<StatusServer> {
    const server = createServer((request, response) => {
      answer(request.url ?? "", options, response).catch(() => response.destroy());
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", (cause) => {
        const message = `http.port ${options.port} on ${options.host}: ${cause.message}.`;
        reject(
          new MortiseError({
            code: "MORTISE_OPERATOR_PORT_IN_USE",
            message,
            detail: { field: "http.port" },
            cause,
          }),
        );
      });
      server.listen(options.port, options.host, resolve);
    });
    return new StatusServer(server);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

async function answer(url: string, options: StatusServerOptions, response: ServerResponse): Promise<void> {
  const [path] = url.split("?");
  switch (path) {
    case "/healthz":
      return send(response, 200, "text/plain", "alive\n");
    case "/readyz":
      return options.isReady()
        ? send(response, 200, "text/plain", "ready\n")
        : send(response, 503, "text/plain", "not ready\n");
    case "/metrics":
      return send(response, 200, options.metrics.contentType, await options.metrics.render());
    case "/cpu":
      return send(response, 200, "application/json", JSON.stringify(options.cpu()));
    default:
      return send(response, 404, "text/plain", "here are /healthz, /readyz, /metrics and /cpu\n");
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { "content-type": type }).end(body);
}
