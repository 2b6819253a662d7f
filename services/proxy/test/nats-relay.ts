/**
 * A wire between one client and nats-server that a test can hold: before a turn reaches the server, or before
 * its acknowledgement comes back. Everything else passes as it is, so the proxy behind it is the real one.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** How a client begins to publish a record of a session. */
const PUBLISH = "HPUB mortise.v1.capture.";

export type HoldPoint = "before-publish" | "before-acknowledgement";

export class NatsRelay {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private point: HoldPoint | undefined;
  private reached = Promise.withResolvers<void>();

  private constructor(server: Server) {
    this.server = server;
  }

  static async start(natsUrl: string): Promise<NatsRelay> {
    const { hostname, port } = new URL(natsUrl);
    const server = createServer();
    const relay = new NatsRelay(server);
    server.on("connection", (client) => relay.join(client, connect(Number(port), hostname)));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return relay;
  }

  get url(): string {
    return `nats://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Stops the wire for good at the next record; resolves when it has come to that point. */
  hold(point: HoldPoint): Promise<void> {
    this.point = point;
    this.reached = Promise.withResolvers();
    return this.reached.promise;
  }

  stop(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  private join(client: Socket, server: Socket): void {
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        server.destroy();
        this.sockets.delete(socket);
      });
    }
    let mayPublish = true;
    let mayAcknowledge = true;
    client.on("data", (chunk) => {
      if (this.point !== undefined && chunk.includes(PUBLISH)) {
        mayPublish = this.point !== "before-publish";
        mayAcknowledge = false;
        this.reached.resolve();
      }
      if (mayPublish) server.write(chunk);
    });
    server.on("data", (chunk) => {
      if (mayAcknowledge) client.write(chunk);
    });
  }
}
