/**
 * Owns turns that are sampled and not yet on the stream: how much they may be together, and trying again until
 * they are there. In memory: what a crash loses was never acknowledged to a harness (C3), which asks again.
 *
 * P1  Above its bounds nothing new is sampled (`refuseIfFull`); what is being sampled then still fits in.
 * P2  While the bus is away one turn tries and the others wait for it, so that an outage does not fill the
 *     client's buffers with repeated attempts.
 * P3  Order within a session is its own queue's (session.ts): a turn enters only after the one before is stored.
 */
import { MortiseError } from "@mortise/contracts";
import { backoff, type Clock, type Log, sleep } from "@mortise/kernel";

export interface SpoolOptions {
  readonly maxTurns: number;
  readonly maxBytes: number;
  readonly clock: Clock;
  readonly log: Log;
}

const PROBE = { baseMs: 100, maxMs: 2_000 };
/** Harnesses that honour it come back when a short outage is over. */
const RETRY_AFTER_MS = 5_000;

export class Spool {
  private readonly options: SpoolOptions;
  private readonly closing = new AbortController();
  private waiting = { turns: 0, bytes: 0 };
  /** Resolves when the bus takes turns again; undefined while it does. */
  private outage: Promise<void> | undefined;

  constructor(options: SpoolOptions) {
    this.options = options;
  }

  get turns(): number {
    return this.waiting.turns;
  }

  get bytes(): number {
    return this.waiting.bytes;
  }

  /** @throws MortiseError MORTISE_TRANSPORT_FULL (P1) */
  refuseIfFull(): void {
    const { maxTurns, maxBytes } = this.options;
    if (this.turns < maxTurns && this.bytes < maxBytes) return;
    throw new MortiseError({
      code: "MORTISE_TRANSPORT_FULL",
      message: `${this.turns} sampled turns (${this.bytes} bytes) wait for the bus.`,
      fix: "Wait for NATS to come back, or raise proxy.spoolTurns and proxy.spoolBytes.",
      retryAfterMs: RETRY_AFTER_MS,
    });
  }

  /** Counts a turn from the moment it is sampled until `append` has stored it or failed for good. */
  async hold<T>(bytes: number, append: () => Promise<T>): Promise<T> {
    this.waiting.turns++;
    this.waiting.bytes += bytes;
    try {
      return await append();
    } finally {
      this.waiting.turns--;
      this.waiting.bytes -= bytes;
    }
  }

  /** Calls `append` until the bus has taken it. Other failures than an outage are the caller's. */
  async store<T>(append: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.outage;
      try {
        return await append();
      } catch (error) {
        if (!isOutage(error) || this.closing.signal.aborted) throw error;
        if (!this.outage) return this.probe(append);
      }
    }
  }

  /** The process ends: what waits is given up, and its harnesses ask another replica. */
  close(): void {
    this.closing.abort(
      new MortiseError({ code: "MORTISE_TRANSPORT_UNAVAILABLE", message: "The proxy is stopping." }),
    );
  }

  /** P2 */
  private async probe<T>(append: () => Promise<T>): Promise<T> {
    const { clock, log } = this.options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.outage = promise;
    const since = clock.now();
    log.warn({ event: "spool.waiting" });
    try {
      for (let attempt = 0; ; attempt++) {
        await sleep(backoff(attempt, PROBE), clock, this.closing.signal);
        try {
          return await append();
        } catch (error) {
          if (!isOutage(error)) throw error;
        }
      }
    } finally {
      log.warn({ event: "spool.resumed", turns: this.turns, bytes: this.bytes, ms: clock.now() - since });
      this.outage = undefined;
      resolve();
    }
  }
}

/** The bus is away, or its stream is full until something is archived: both pass. */
function isOutage(error: unknown): boolean {
  return (
    error instanceof MortiseError &&
    (error.code === "MORTISE_TRANSPORT_UNAVAILABLE" || error.code === "MORTISE_TRANSPORT_FULL")
  );
}
