/**
 * Owns the model endpoint of one sandbox: connections accepted inside its network namespace are joined, byte
 * for byte, to the proxy. Which sandbox speaks is known from the listener, not from what it says: the proxy is told
 * first, in a line of our own (L2).
 * Does not parse, log or buffer what passes; the proxy checks the session token.
 *
 * L1  A proxy that is being restarted is waited for: a connection made meanwhile is held, not refused, because
 *     a harness gives up long before a process is back.
 * L2  The line with the listener key is the first thing on every connection. What comes from inside comes after it, so
 *     nothing inside can say it, replace it or leave it out (DESIGN §7).
 */
import net from "node:net";
import type { Duplex } from "node:stream";
import { RequestTimes } from "./request-times.js";
import type { ModelAddress } from "./types.js";

/** A harness needs a handful; more would use up the manager's descriptors. */
const MAX_CONNECTIONS = 64;
/** A restarted proxy listens again within seconds, on a busy machine within ten. */
const REACH_MS = 30_000;
const REACH_PAUSE_MS = 100;

/** The inner end of a connection: a socket, or something that carries one. */
export interface InnerEnd extends Duplex {
  /** Closes it once what was written is on its way. */
  destroySoon(): void;
}

/** A connection to the proxy that is being made, and the event that says it stands. */
export interface OuterEnd {
  readonly socket: net.Socket;
  readonly ready: "connect" | "secureConnect";
}

/** What a connection to the proxy begins with (L2); empty without a key. */
export function listenerLine({ listenerKey }: Pick<ModelAddress, "listenerKey">): string {
  return listenerKey === undefined ? "" : `@mortise/1 ${listenerKey}\r\n`;
}

export class ModelRelay {
  readonly #line: string;
  readonly #connect: () => OuterEnd;
  readonly #server: net.Server;
  readonly #sockets = new Set<Duplex>();
  readonly #times = new RequestTimes();
  #isUnreachable = false;

  private constructor(upstream: ModelAddress, connect = () => plainly(upstream)) {
    this.#line = listenerLine(upstream);
    this.#connect = connect;
    this.#server = new net.Server({ noDelay: true }, (inner) => this.join(inner));
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /** Without a listener: whoever accepts connections elsewhere gives them to `join`. */
  static carried(upstream: ModelAddress): ModelRelay {
    return new ModelRelay(upstream);
  }

  /** Takes over a listening socket made elsewhere, as a descriptor. */
  static async adopt(listenerFd: number, upstream: ModelAddress): Promise<ModelRelay> {
    const relay = new ModelRelay(upstream);
    await relay.#listening({ fd: listenerFd });
    return relay;
  }

  /**
   * Opens a listener of its own on a free loopback port, for sandboxes that share the host's network.
   * @param connect begins a connection to the proxy; plain TCP when absent
   */
  static async open(
    upstream: ModelAddress,
    connect?: () => OuterEnd,
  ): Promise<{ relay: ModelRelay; port: number }> {
    const relay = new ModelRelay(upstream, connect);
    await relay.#listening({ host: "127.0.0.1", port: 0 });
    return { relay, port: (relay.#server.address() as net.AddressInfo).port };
  }

  /** Whether the last connection to the proxy could not be made. */
  get isUnreachable(): boolean {
    return this.#isUnreachable;
  }

  /** Time until now in which at least one request was open, milliseconds. */
  get modelTimeMs(): number {
    return this.#times.totalMs(performance.now());
  }

  /** Ends every connection and the listener; nothing passes afterwards. Idempotent. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    if (!this.#server.listening) return;
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #listening(options: net.ListenOptions | { fd: number }): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(options as net.ListenOptions, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
  }

  /** Joins a connection that was accepted inside to the proxy. */
  join(inner: InnerEnd): void {
    this.#sockets.add(inner);
    inner.once("close", () => this.#sockets.delete(inner));
    // Until there is an other end, what fails here concerns only this one.
    inner.on("error", () => inner.destroy());
    this.#reach(inner, performance.now() + REACH_MS);
  }

  /** Connects to the proxy, again and again until the deadline (L1). Nothing is read from `inner` before that. */
  #reach(inner: InnerEnd, deadline: number): void {
    if (inner.destroyed) return;
    const { socket: outer, ready } = this.#connect();
    this.#sockets.add(outer);
    outer.once("close", () => this.#sockets.delete(outer));
    const onRefused = () => {
      outer.destroy();
      this.#isUnreachable = true;
      if (performance.now() < deadline) {
        setTimeout(() => this.#reach(inner, deadline), REACH_PAUSE_MS);
        return;
      }
      inner.destroy();
    };
    outer.once("error", onRefused);
    outer.once(ready, () => {
      outer.off("error", onRefused);
      this.#isUnreachable = false;
      if (inner.destroyed) {
        outer.destroy();
        return;
      }
      if (this.#line !== "") outer.write(this.#line);
      this.#splice(inner, outer);
    });
  }

  #splice(inner: InnerEnd, outer: net.Socket): void {
    splice(inner, outer);
    inner.on("data", () => this.#times.sent(inner, performance.now()));
    outer.on("data", () => this.#times.received(inner, performance.now()));
    inner.once("close", () => this.#times.closed(inner, performance.now()));
  }
}

function plainly({ host, port }: ModelAddress): OuterEnd {
  return { socket: net.connect({ host, port, noDelay: true }), ready: "connect" };
}

/** Either end failing ends both; the harness sees a broken connection and retries, as it would anywhere. */
function splice(inner: InnerEnd, outer: InnerEnd): void {
  for (const [socket, other] of [
    [inner, outer],
    [outer, inner],
  ] as const) {
    socket.pipe(other);
    socket.on("error", () => other.destroy());
    socket.on("close", () => other.destroySoon());
  }
}
