/**
 * Owns getting a reply through one HTTP connection: streamed or whole, with back-pressure, keep-alives and
 * an honest account of whether it arrived. Does not know what the events mean (dialect/).
 *
 * F1  Headers go out before anything is sampled; the final event only after the reply has ended, which is
 *     after the journal's acknowledgement (C3).
 * F2  "Delivered" is said when the last byte was handed to the operating system, "lost" when the connection
 *     ended before that; exactly one of them.
 */
import type { ServerResponse } from "node:http";
import type { Dialect, ReplyWriter } from "@mortise/dialects";
import { type Cancel, type Clock, fromUnknown } from "@mortise/kernel";
import type { Connection } from "../session/reply.js";

/** Clients give up on silent streams after minutes, some after 30 s of no event. */
const KEEP_ALIVE_MS = 10_000;
/** A client that takes nothing for this long is gone. */
const STALL_MS = 120_000;

export interface Deliverable {
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly dialect: Dialect;
  readonly writer: ReplyWriter;
}

/** Streams a reply. Resolves when the connection is done with it. */
export function deliverStream(delivery: Deliverable, clock: Clock): Promise<void> {
  const settled = account(delivery.response, delivery.connection);
  new Pump(delivery, clock).start();
  return settled;
}

/** Answers with the whole reply once it has ended. */
export async function deliverWhole({ response, connection, dialect, writer }: Deliverable): Promise<void> {
  const settled = account(response, connection);
  const { reply } = connection;
  try {
    const end = await reply.ended;
    const body = writer.whole(reply.parts, end);
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    reply.bytesDelivered += body.length;
    response.end(body);
  } catch (error) {
    // A reply that failed was not delivered, even when the error was.
    connection.lost();
    const { status, headers, body } = dialect.refuse(fromUnknown(error, "MORTISE_PROVIDER_ENGINE"), "");
    response.writeHead(status, { ...headers, "content-type": "application/json" });
    response.end(body);
  }
  await settled;
}

/** F2 */
function account(response: ServerResponse, connection: Connection): Promise<void> {
  return new Promise((resolve) => {
    response.once("finish", () => connection.delivered());
    response.once("close", () => {
      connection.lost();
      resolve();
    });
  });
}

class Pump {
  private readonly response: ServerResponse;
  private readonly connection: Connection;
  private readonly writer: ReplyWriter;
  private readonly clock: Clock;
  private sent = 0;
  private isBlocked = false;
  private cancelTimer: Cancel = () => {};

  constructor({ response, connection, writer }: Deliverable, clock: Clock) {
    this.response = response;
    this.connection = connection;
    this.writer = writer;
    this.clock = clock;
  }

  start(): void {
    this.response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    this.response.on("drain", () => {
      this.isBlocked = false;
      this.pump();
    });
    this.response.once("close", () => this.cancelTimer());
    this.connection.listen(() => this.pump());
    this.write(this.writer.opening(0));
    this.pump();
    this.connection.reply.ended.then(
      (end) => this.finish(() => this.writer.ending(end)),
      (error: unknown) => {
        // The stream ended with an error event: whatever was sent of the reply, its end was not.
        this.connection.lost();
        const failure = fromUnknown(error, "MORTISE_PROVIDER_ENGINE");
        this.finish(() => this.writer.failing(failure));
      },
    );
  }

  /** Everything that is new in one write; nothing while the client has not taken the last one. */
  private pump(): void {
    const { parts } = this.connection.reply;
    if (this.isBlocked || this.sent === parts.length) return;
    const fresh = parts.slice(this.sent);
    this.sent = parts.length;
    this.write(this.writer.parts(fresh));
  }

  private finish(ending: () => string): void {
    if (this.response.destroyed) return;
    const { parts } = this.connection.reply;
    const rest = this.writer.parts(parts.slice(this.sent));
    this.sent = parts.length;
    this.response.end(rest + ending());
  }

  private write(text: string): void {
    if (this.response.destroyed) return;
    this.connection.reply.bytesDelivered += Buffer.byteLength(text);
    this.isBlocked = !this.response.write(text);
    this.cancelTimer();
    this.cancelTimer = this.isBlocked
      ? this.clock.after(STALL_MS, () => this.response.destroy())
      : this.clock.after(KEEP_ALIVE_MS, () => this.write(this.writer.keepAlive()));
  }
}
