/**
 * Owns the way from an agent to the model: connections accepted on this machine's loopback are joined, byte for byte,
 * to the proxy named by the invocation, over TLS where its URL says so. Says the listener's key first, which never
 * enters the place the agent is in. Does not parse, log or buffer what passes.
 */
import net from "node:net";
import tls from "node:tls";

const MAX_CONNECTIONS = 64;
/** A proxy that is being restarted is waited for: a harness gives up long before it is back. */
const REACH_MS = 30_000;
const REACH_PAUSE_MS = 200;
const TLS_PORT = 443;
const PLAIN_PORT = 80;

export interface ModelTarget {
  /** http or https with host and port, without a path. */
  readonly url: string;
  /** Empty: nothing is said. */
  readonly listenerKey: string;
}

export class ModelForwarder {
  readonly #target: ModelTarget;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();
  #isUnreachable = false;

  private constructor(target: ModelTarget) {
    this.#target = target;
    this.#server = new net.Server({ noDelay: true }, (inner) => this.#join(inner));
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  static async open(target: ModelTarget): Promise<ModelForwarder> {
    const forwarder = new ModelForwarder(target);
    await new Promise<void>((resolve, reject) => {
      forwarder.#server.once("error", reject);
      forwarder.#server.listen(0, "127.0.0.1", resolve);
    });
    return forwarder;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Whether the last connection to the proxy could not be made. */
  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  /** Ends every connection and the listener; nothing passes afterwards. Idempotent. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #join(inner: net.Socket): void {
    this.#sockets.add(inner);
    inner.once("close", () => this.#sockets.delete(inner));
    inner.on("error", () => inner.destroy());
    this.#reach(inner, performance.now() + REACH_MS);
  }

  #reach(inner: net.Socket, deadline: number): void {
    if (inner.destroyed) return;
    const { socket: outer, ready } = connect(this.#target.url);
    this.#sockets.add(outer);
    outer.once("close", () => this.#sockets.delete(outer));
    const onRefused = () => {
      outer.destroy();
      this.#isUnreachable = true;
      if (performance.now() >= deadline) inner.destroy();
      else setTimeout(() => this.#reach(inner, deadline), REACH_PAUSE_MS);
    };
    outer.once("error", onRefused);
    outer.once(ready, () => {
      outer.off("error", onRefused);
      this.#isUnreachable = false;
      if (inner.destroyed) {
        outer.destroy();
        return;
      }
      if (this.#target.listenerKey !== "") outer.write(`@mortise/1 ${this.#target.listenerKey}\r\n`);
      splice(inner, outer);
    });
  }
}

function connect(url: string): { socket: net.Socket; ready: "connect" | "secureConnect" } {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol === "http:")
    return {
      socket: net.connect({ host, port: Number(port || PLAIN_PORT), noDelay: true }),
      ready: "connect",
    };
  const servername = net.isIP(host) === 0 ? { servername: host } : {};
  const socket = tls.connect({ host, port: Number(port || TLS_PORT), ...servername });
  socket.setNoDelay(true);
  return { socket, ready: "secureConnect" };
}

/** Either end failing ends both; the harness sees a broken connection and retries, as it would anywhere. */
function splice(inner: net.Socket, outer: net.Socket): void {
  for (const [socket, other] of [
    [inner, outer],
    [outer, inner],
  ] as const) {
    socket.pipe(other);
    socket.on("error", () => other.destroy());
    socket.on("close", () => other.destroySoon());
  }
}
