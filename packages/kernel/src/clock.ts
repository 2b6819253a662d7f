/**
 * Owns time: what "now" is and how to be called later.
 * Does not know what the time is used for; code that reads `Date.now()` or `setTimeout` directly cannot be
 * tested without waiting, so everything in a service takes a `Clock`.
 */

/** Stops a pending call. Calling it after the call happened, or twice, does nothing. */
export type Cancel = () => void;

/** Milliseconds since the epoch, and calls after a delay in milliseconds. */
export interface Clock {
  now(): number;
  after(delayMs: number, fn: () => void): Cancel;
}

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, fn) {
    const timer = setTimeout(fn, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

interface Pending {
  readonly dueAt: number;
  readonly order: number;
  readonly fn: () => void;
}

/** A clock that moves only when told to: tests own time. */
export class ManualClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #pending = new Set<Pending>();

  constructor(startMs = 0) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, fn: () => void): Cancel {
    const entry = { dueAt: this.#nowMs + Math.max(0, delayMs), order: this.#order++, fn };
    this.#pending.add(entry);
    return () => {
      this.#pending.delete(entry);
    };
  }

  /** Moves time forward, calling everything that falls due, in order of due time and then of request. */
  advance(ms: number): void {
    const until = this.#nowMs + ms;
    for (let next = this.#earliest(until); next !== undefined; next = this.#earliest(until)) {
      this.#pending.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.dueAt);
      next.fn();
    }
    this.#nowMs = until;
  }

  #earliest(until: number): Pending | undefined {
    let best: Pending | undefined;
    for (const entry of this.#pending) {
      if (entry.dueAt > until) continue;
      if (
        best === undefined ||
        entry.dueAt < best.dueAt ||
        (entry.dueAt === best.dueAt && entry.order < best.order)
      ) {
        best = entry;
      }
    }
    return best;
  }
}
