/**
 * Owns connections to the allowed hosts of one sandbox: accepted inside its namespace under the very address and port
 * they were made to, checked again here, and joined to a connection of this process. Whatever was reachable ends with
 * `close`: no connection of a sandbox has a path of its own.
 * Does not resolve names, parse or log what passes, its first bytes apart. TCP only.
 *
 * R1  An address that is allowed for its names serves only these: what speaks TLS or HTTP, and everything on the ports
 *     of the web, must ask for one of them before a byte of it leaves.
 */
import net from "node:net";
import { askedSite, MAX_FIRST_BYTES } from "./asked-site.js";

/** Package managers open dozens; more would use up the manager's descriptors. */
const MAX_CONNECTIONS = 128;
const CONNECT_TIMEOUT_MS = 30_000;
const WEB_PORTS = new Set([80, 443]);

/** Allowed addresses, each with the names it is allowed for; none when it was named itself. */
export type AllowedAddresses = ReadonlyMap<string, ReadonlySet<string>>;

export class EgressRelay {
  readonly #server: net.Server;
  readonly #allowed: AllowedAddresses;
  readonly #sockets = new Set<net.Socket>();
  #nDenied = 0;

  private constructor(allowed: AllowedAddresses) {
    this.#allowed = allowed;
    // One side may have said all it has to say long before the other.
    this.#server = new net.Server({ noDelay: true, allowHalfOpen: true }, (inner) => this.#join(inner));
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("drop", () => this.#nDenied++);
  }

  /** Takes over a transparent listening socket, as a descriptor. */
  static adopt(listenerFd: number, allowed: AllowedAddresses): Promise<EgressRelay> {
    const relay = new EgressRelay(allowed);
    return new Promise((resolve, reject) => {
      relay.#server.once("error", reject);
      relay.#server.listen({ fd: listenerFd }, () => {
        relay.#server.off("error", reject);
        resolve(relay);
      });
    });
  }

  /** Connections refused: to the listener's own address, one too many, or for another site (R1). */
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
    const names = this.#allowed.get(host ?? "");
    if (host === undefined || port === undefined || names === undefined) {
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
    inner.once("close", () => outer.destroySoon());
    outer.on("error", () => inner.resetAndDestroy());
    outer.once("close", () => inner.destroySoon());
    outer.once("timeout", () => outer.destroy(new Error("no connection in time")));
    outer.once("connect", () => {
      outer.setTimeout(0);
      outer.pipe(inner);
      if (names.size === 0) inner.pipe(outer);
      else this.#admit(inner, outer, (bytes) => isAdmitted(bytes, port, names));
    });
  }

  /** R1. What a server says first passes meanwhile. */
  #admit(
    inner: net.Socket,
    outer: net.Socket,
    judge: (bytes: Buffer) => "admitted" | "refused" | "incomplete",
  ): void {
    let first = Buffer.alloc(0);
    const onEnd = () => outer.end();
    const onData = (chunk: Buffer) => {
      first = Buffer.concat([first, chunk]);
      const verdict = judge(first);
      if (verdict === "incomplete" && first.byteLength < MAX_FIRST_BYTES) return;
      inner.off("data", onData).off("end", onEnd);
      if (verdict !== "admitted") {
        this.#nDenied++;
        outer.destroy();
        inner.resetAndDestroy();
        return;
      }
      outer.write(first);
      inner.pipe(outer);
    };
    inner.on("data", onData).once("end", onEnd);
  }

  #hold(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

function isAdmitted(
  bytes: Buffer,
  port: number,
  names: ReadonlySet<string>,
): "admitted" | "refused" | "incomplete" {
  const asked = askedSite(bytes);
  if (asked.kind === "incomplete") return "incomplete";
  if (asked.kind === "site") return names.has(asked.name) ? "admitted" : "refused";
  return asked.kind === "other-protocol" && !WEB_PORTS.has(port) ? "admitted" : "refused";
}
