/**
 * Owns getting a reply through one HTTP connection: streamed or whole, with back-pressure, keep-alives and
 * an honest account of whether it arrived. Does not know what the events mean (packages/dialects).
 *
 * F1  Headers go out before anything is sampled; the final event only after the reply has ended, which is
 *     after the journal's acknowledgement (C3).
 * F2  "Delivered" is said when the last byte was handed to the operating system, "lost" when the connection
 *     ended before that; exactly one of them.
 * F3  A reply whose end cannot be stored for JOURNAL_PATIENCE_MS fails on this connection with an error that is
 *     retried. The turn is not lost: it waits in the spool, and the retry joins it (C6).
 */
import type { ServerResponse } from "node:http";
import type { ReplyEnd } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import type { Dialect, ReplyTokens, ReplyWriter } from "@mortise/dialects";
import { type Cancel, type Clock, fromUnknown } from "@mortise/kernel";
import type { Connection } from "../session/reply.js";

/** Clients give up on silent streams after minutes, some after 30 s of no event. */
const KEEP_ALIVE_MS = 10_000;
/** A client that takes nothing for this long is gone. */
const STALL_MS = 120_000;
/** Restarts and elections of the bus take seconds; harnesses wait minutes. */
const JOURNAL_PATIENCE_MS = 60_000;
const RETRY_AFTER_MS = 5_000;

export interface Deliverable {
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly dialect: Dialect;
  readonly writer: ReplyWriter;
  readonly requestId: string;
  /** Ids of the ended reply, for a client that asked for them. */
  tokens(): ReplyTokens | undefined;
}

/** Streams a reply. Resolves when the connection is done with it, to whether it was delivered. */
export function deliverStream(delivery: Deliverable, clock: Clock): Promise<boolean> {
  const settled = account(delivery.response, delivery.connection);
  if (!delivery.response.destroyed) new Pump(delivery, clock).start();
  return settled;
}

/** Answers with the whole reply once it has ended. Resolves as `deliverStream`. */
export async function deliverWhole(delivery: Deliverable, clock: Clock): Promise<boolean> {
  const { response, connection, dialect, writer, requestId } = delivery;
  const settled = account(response, connection);
  const { reply } = connection;
  try {
    const end = await endOf(connection, clock);
    const body = writer.whole(reply.parts, end, delivery.tokens());
    const size = Buffer.byteLength(body);
    response.writeHead(200, { "content-type": "application/json", "content-length": size });
    reply.bytesDelivered += size;
    endWith(body, response, clock);
  } catch (error) {
    // A reply that failed was not delivered, even when the error was.
    connection.lost();
    const { status, headers, body } = dialect.refuse(
      fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL"),
      requestId,
    );
    response.writeHead(status, { ...headers, "content-type": "application/json" });
    endWith(body, response, clock);
  }
  return settled;
}

/** The last bytes go out; a client that does not take them in time is gone. */
function endWith(last: string, response: ServerResponse, clock: Clock): void {
  if (response.destroyed) return;
  const cancel = clock.after(STALL_MS, () => response.destroy());
  response.once("close", cancel);
  response.end(last);
}

/** F2 */
function account(response: ServerResponse, connection: Connection): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = () => {
      connection.lost();
      resolve(connection.isDelivered);
    };
    response.once("finish", () => connection.delivered());
    response.once("close", settle);
    if (response.destroyed) settle();
  });
}

/** F3 */
function endOf({ reply }: Connection, clock: Clock): Promise<ReplyEnd> {
  const { promise, reject } = Promise.withResolvers<never>();
  let cancel: Cancel = () => {};
  void reply.sampled.then(() => {
    cancel = clock.after(JOURNAL_PATIENCE_MS, () => reject(notStored()));
  });
  return Promise.race([reply.ended, promise]).finally(() => cancel());
}

class Pump {
  private readonly delivery: Deliverable;
  private readonly clock: Clock;
  private sent = 0;
  private isBlocked = false;
  private cancelTimer: Cancel = () => {};

  constructor(delivery: Deliverable, clock: Clock) {
    this.delivery = delivery;
    this.clock = clock;
  }

  start(): void {
    const { response, connection, writer } = this.delivery;
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.on("drain", () => {
      this.isBlocked = false;
      this.pump();
    });
    response.once("close", () => this.cancelTimer());
    connection.listen(() => this.pump());
    this.write(writer.opening(connection.reply.promptTokens));
    this.pump();
    endOf(connection, this.clock).then(
      (end) => {
        const rest = this.unsent();
        this.finish(rest + writer.ending(end, this.delivery.tokens()));
      },
      (error: unknown) => {
        // Whatever was sent of the reply, its end was not. No more of it is sent: a harness may go on from it.
        connection.lost();
        this.finish(writer.failing(fromUnknown(error, "MORTISE_TRANSPORT_INTERNAL")));
      },
    );
  }

  /** Everything that is new in one write; nothing while the client has not taken the last one. */
  private pump(): void {
    if (this.isBlocked || this.sent === this.delivery.connection.reply.parts.length) return;
    this.write(this.unsent());
  }

  private unsent(): string {
    const { parts } = this.delivery.connection.reply;
    const fresh = parts.slice(this.sent);
    this.sent = parts.length;
    return this.delivery.writer.parts(fresh);
  }

  private finish(last: string): void {
    const { response } = this.delivery;
    this.cancelTimer();
    endWith(last, response, this.clock);
  }

  private write(text: string): void {
    const { response, connection, writer } = this.delivery;
    if (response.destroyed || response.writableEnded) return;
    connection.reply.bytesDelivered += Buffer.byteLength(text);
    this.isBlocked = !response.write(text);
    this.cancelTimer();
    this.cancelTimer = this.isBlocked
      ? this.clock.after(STALL_MS, () => response.destroy())
      : this.clock.after(KEEP_ALIVE_MS, () => this.write(writer.keepAlive()));
  }
}

function notStored(): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    message: `The turn could not be stored within ${JOURNAL_PATIENCE_MS} ms.`,
    retryAfterMs: RETRY_AFTER_MS,
  });
}
