/**
 * Owns telling whose listener a connection comes from: before the first request, a sandbox's listener says one line
 * with its key. What begins like a request is a direct connection and served as it is. Does not read requests.
 *
 * K1  The line is read once, before HTTP: nothing a client says later on its connection can take its place. A sandbox
 *     speaks only behind its listener's line.
 * K2  A line with a key that is none of ours makes every request on that connection refused, not anonymous.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { ListenerKeys, SessionName } from "../session/listener-key.js";

/** No request begins with this byte: one is enough to tell. Docs and sandbox-managers spell it too. */
const MARK = "@".charCodeAt(0);
const LINE = /^@mortise\/1 ([^\s]+)\r\n$/;
const LINE_END = 0x0a;
/** Two ids of 128 characters and the code are less. */
const MAX_LINE_BYTES = 512;
/** As long as HTTP waits for the headers of a first request. */
const PATIENCE_MS = 60_000;
/** Of a connection on which too little was said. */
const ENDINGS = ["end", "error", "timeout"] as const;

export type Listener = SessionName | "unknown";

export class Listeners {
  private readonly keys: ListenerKeys;
  private readonly known = new WeakMap<Socket, Listener>();
  /** Connections that have not said enough to tell. */
  private readonly undecided = new Set<Socket>();

  /** Takes every connection of the server before HTTP does. */
  constructor(server: Server, keys: ListenerKeys) {
    this.keys = keys;
    const [serve, ...more] = server.listeners("connection") as ((socket: Socket) => void)[];
    if (serve === undefined || more.length > 0)
      throw new Error("an HTTP server takes its connections itself");
    server.removeListener("connection", serve);
    server.on("connection", (socket: Socket) => this.begin(socket, () => serve.call(server, socket)));
  }

  /** Whose listener a connection comes from; undefined for a direct one. */
  of(socket: Socket): Listener | undefined {
    return this.known.get(socket);
  }

  /** Ends what has not said anything yet. */
  close(): void {
    for (const socket of this.undecided) socket.destroy();
  }

  private begin(socket: Socket, serve: () => void): void {
    let first = Buffer.alloc(0);
    const drop = () => socket.destroy();
    const leave = () => {
      for (const ending of ENDINGS) socket.off(ending, drop);
      socket.off("readable", look).off("close", leave).setTimeout(0);
      this.undecided.delete(socket);
    };
    const look = () => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      first = Buffer.concat([first, chunk]);
      const isMarked = first[0] === MARK;
      const end = isMarked ? first.indexOf(LINE_END) + 1 : 0;
      if (isMarked && end === 0) {
        if (first.length > MAX_LINE_BYTES) drop();
        return;
      }
      leave();
      if (end > 0) this.known.set(socket, this.listenerOf(first.subarray(0, end)));
      if (end < first.length) socket.unshift(first.subarray(end));
      serve();
    };
    this.undecided.add(socket);
    socket.setTimeout(PATIENCE_MS);
    for (const ending of ENDINGS) socket.on(ending, drop);
    socket.on("readable", look).on("close", leave);
  }

  /** K2 */
  private listenerOf(line: Buffer): Listener {
    const [, key] = LINE.exec(line.toString("latin1")) ?? [];
    return (key === undefined ? undefined : this.keys.verify(key)) ?? "unknown";
  }
}
