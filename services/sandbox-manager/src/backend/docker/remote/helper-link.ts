/**
 * Owns the manager's side of the conversation with one helper: operations asked, connections fetched, and knowing when
 * the helper is gone. Does not start it.
 */
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { createInterface } from "node:readline";
import type { Duplex } from "node:stream";
import type { InnerEnd } from "../../relay.js";
import {
  type Answered,
  type Asked,
  CONNECTIONS_PATH,
  type ConnectionMade,
  connectionPath,
  decodeFrame,
  encodeFrame,
  heardError,
  type Operation,
  readAll,
  type ToldError,
} from "./wire.js";

/** A host that went away without a word is noticed by its silence. */
const PING_EVERY_MS = 15_000;
const PING_PATIENCE_MS = 60_000;

export class HelperLink {
  readonly #session: ClientHttp2Session;
  readonly #pings: NodeJS.Timeout;
  readonly #lost = Promise.withResolvers<string>();
  #heardAt = performance.now();

  private constructor(session: ClientHttp2Session) {
    this.#session = session;
    session.on("error", (error: Error) => this.#end(error.message));
    session.once("close", () => this.#end("its connection ended"));
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
    this.#pings.unref();
  }

  /**
   * Begins the conversation.
   * @param streams of the helper's process
   * @param onConnection one was made inside a sandbox; `fetch` it or it waits
   */
  static async open(streams: Duplex, onConnection: (made: ConnectionMade) => void): Promise<HelperLink> {
    const session = http2.connect("http://helper", {
      createConnection: () => streams,
      settings: { initialWindowSize: 1 << 20, enablePush: false },
      peerMaxConcurrentStreams: 100_000,
      maxSessionMemory: 512,
    });
    const link = new HelperLink(session);
    session.once("connect", () => session.setLocalWindowSize(16 << 20));
    const teller = link.#stream(CONNECTIONS_PATH);
    teller.end();
    const lines = createInterface({ input: teller }).on("line", (line) =>
      onConnection(JSON.parse(line) as ConnectionMade),
    );
    // What breaks it off breaks the session, which says so.
    for (const one of [teller, lines]) one.on("error", () => undefined);
    await Promise.race([
      new Promise<void>((resolve) => teller.once("response", () => resolve())),
      link.lost.then((why) => Promise.reject(new Error(why))),
    ]);
    return link;
  }

  /** Settles with the reason once nothing can be asked any more. */
  get lost(): Promise<string> {
    return this.#lost.promise;
  }

  /** Rejects with what the helper's host says, or because it is gone. */
  async ask<Name extends Operation>(
    name: Name,
    asked: Asked<Name>,
    bytes?: Uint8Array,
  ): Promise<{ facts: Answered<Name>; bytes: Uint8Array }> {
    const stream = this.#stream(`/${name}`);
    const status = new Promise<number>((resolve) =>
      stream.once("response", (headers) => resolve(headers[":status"] ?? 0)),
    );
    stream.end(encodeFrame(asked, bytes));
    const reply = await readAll(stream);
    if (reply.byteLength === 0) throw new Error("the helper went away");
    const frame = decodeFrame(reply);
    if ((await status) !== 200) throw heardError(frame.facts as ToldError);
    return { facts: frame.facts as Answered<Name>, bytes: frame.bytes };
  }

  /** The connection itself; undefined once the helper is gone, and it with it. */
  fetch(connection: number): InnerEnd | undefined {
    if (this.#session.closed || this.#session.destroyed) return undefined;
    const stream = this.#stream(connectionPath(connection));
    return Object.assign(stream, { destroySoon: () => void stream.end() });
  }

  close(): void {
    this.#end("it was closed");
  }

  #stream(path: string): ClientHttp2Stream {
    return this.#session.request({ ":method": "POST", ":path": path }, { endStream: false });
  }

  #ping(): void {
    if (performance.now() - this.#heardAt > PING_PATIENCE_MS) this.#end("it does not answer");
    else if (!this.#session.destroyed)
      this.#session.ping((error) => {
        if (error === null) this.#heardAt = performance.now();
      });
  }

  #end(why: string): void {
    clearInterval(this.#pings);
    this.#lost.resolve(why);
    if (!this.#session.destroyed) this.#session.destroy();
  }
}
