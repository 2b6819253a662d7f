/**
 * Owns connections to the allowed hosts of one sandbox: accepted inside its namespace under the very address and port
 * they were made to, checked again here, and joined to a connection of this process. Whatever was reachable ends with
 * `close`: no connection of a sandbox has a path of its own.
 * Does not resolve names, parse or log what passes. TCP only.
 */
import net from "node:net";
import { splice } from "../relay.js";

/** Package managers open dozens; more would use up the manager's descriptors. */
const MAX_CONNECTIONS = 128;
const CONNECT_TIMEOUT_MS = 30_000;

export class EgressRelay {
  readonly #server: net.Server;
  readonly #allowed: ReadonlySet<string>;
  readonly #sockets = new Set<net.Socket>();
  #nDenied = 0;

  private constructor(allowed: ReadonlySet<string>) {
    this.#allowed = allowed;
    // One side may have said all it has to say long before the other.
    this.#server = new net.Server({ noDelay: true, allowHalfOpen: true }, (inner) => this.#join(inner));
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("drop", () => this.#nDenied++);
  }

  /** Takes over a transparent listening socket, as a descriptor. */
  static adopt(listenerFd: number, allowed: ReadonlySet<string>): Promise<EgressRelay> {
    const relay = new EgressRelay(allowed);
    return new Promise((resolve, reject) => {
      relay.#server.once("error", reject);
      relay.#server.listen({ fd: listenerFd }, () => {
        relay.#server.off("error", reject);
        resolve(relay);
      });
    });
  }

  /** Connections refused: made to the listener's own address, or one too many. */
  get nDenied(): number {
    return this.#nDenied;
  }

  /** Ends every connection and the listener. Idempotent. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(inner: net.Socket): void {
    const { localAddress: host, localPort: port } = inner;
    if (host === undefined || port === undefined || !this.#allowed.has(host)) {
      this.#nDenied++;
      inner.destroy();
      return;
    }
    this.#hold(inner);
    const outer = net.connect({
      host,
      port,
      noDelay: true,
      allowHalfOpen: true,
      timeout: CONNECT_TIMEOUT_MS,
    });
    this.#hold(outer);
    inner.on("error", () => outer.destroy());
    inner.once("close", () => outer.destroy());
    outer.once("error", () => inner.resetAndDestroy());
    outer.once("timeout", () => outer.destroy(new Error("no connection in time")));
    outer.once("connect", () => {
      outer.setTimeout(0);
      splice(inner, outer);
    });
  }

  #hold(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
