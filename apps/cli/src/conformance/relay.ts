/**
 * Owns the wire between a harness and the proxy: everything passes as it is, byte for byte as it comes, until a
 * case asks for a fault: a refusal in place of the proxy's answer, or a connection that dies. Reads no body.
 */
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Refusal } from "@mortise/dialects";

/** One request that passed, or did not. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  status: number;
  isStream: boolean;
  wasCut: boolean;
}

const MODEL_ROUTES = /\/(chat\/completions|responses|messages)$/;

export class Relay {
  readonly exchanges: Exchange[] = [];
  readonly origin: string;
  private readonly server: Server;
  private readonly upstream: { host: string; port: number };
  private readonly agent = new Agent({ keepAlive: true });
  private readonly open = new Map<ServerResponse, Exchange>();
  private readonly refusals: Refusal[] = [];
  private lastBytesAt = 0;

  private constructor(server: Server, upstream: { host: string; port: number }) {
    this.server = server;
    this.upstream = upstream;
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (request, response) => this.pass(request, response));
  }

  static async start(modelAddress: string): Promise<Relay> {
    const [host, port] = modelAddress.split(":");
    const server = createServer({ requestTimeout: 0, keepAliveTimeout: 90_000 });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return new Relay(server, { host: host!, port: Number(port) });
  }

  /** Answers the next model calls with these, in order, without asking the proxy. */
  refuseNext(...refusals: readonly Refusal[]): void {
    this.refusals.push(...refusals);
  }

  /** Model calls only: probes of models and health are left out. */
  get modelCalls(): Exchange[] {
    return this.exchanges.filter(({ method, path }) => method === "POST" && MODEL_ROUTES.test(path));
  }

  /**
   * Ends every connection with a reply under way, once it began and nothing has come through for `quietMs`.
   * Resolves when the proxy had as long to notice: a reply that ends first counts as delivered, and rightly.
   */
  async cut(quietMs: number): Promise<void> {
    const isFlowing = () => performance.now() - this.lastBytesAt < quietMs;
    const isSilent = () => [...this.open.values()].some((exchange) => exchange.status === 0);
    while (isSilent() || isFlowing()) await sleep(quietMs / 4);
    for (const [response, exchange] of this.open) {
      exchange.wasCut = true;
      response.socket?.destroy();
    }
    await sleep(quietMs);
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
    this.agent.destroy();
  }

  private pass(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? "").split("?", 1)[0]!;
    const exchange = { method: request.method ?? "", path, status: 0, isStream: false, wasCut: false };
    this.exchanges.push(exchange);
    const refusal = MODEL_ROUTES.test(path) ? this.refusals.shift() : undefined;
    if (refusal) {
      exchange.status = refusal.status;
      request.resume().once("end", () => {
        response.writeHead(refusal.status, { ...refusal.headers, "content-type": "application/json" });
        response.end(refusal.body);
      });
      return;
    }
    const { host, port } = this.upstream;
    const outgoing = httpRequest({
      host,
      port,
      agent: this.agent,
      method: request.method,
      path: request.url,
      headers: request.headers,
    });
    this.open.set(response, exchange);
    outgoing.once("response", (incoming) => {
      exchange.status = incoming.statusCode ?? 0;
      exchange.isStream = (incoming.headers["content-type"] ?? "").startsWith("text/event-stream");
      response.writeHead(exchange.status, incoming.headers);
      response.flushHeaders();
      this.lastBytesAt = performance.now();
      incoming.on("data", (chunk: Buffer) => {
        this.lastBytesAt = performance.now();
        if (!response.write(chunk)) incoming.pause();
      });
      response.on("drain", () => incoming.resume());
      incoming.once("end", () => response.end());
      incoming.once("error", () => response.destroy());
    });
    outgoing.once("error", () => response.destroy());
    response.once("close", () => {
      this.open.delete(response);
      outgoing.destroy();
    });
    request.pipe(outgoing);
  }
}
