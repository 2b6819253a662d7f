/**
 * Owns waiting and trying again: exponential delays with jitter, and a loop that stops on the caller's signal.
 * Does not decide what is worth retrying; the caller says so.
 */
import { type Clock, systemClock } from "./clock.js";

export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  /** Uniform in [0, 1); replaceable so that tests are exact. */
  readonly random?: () => number;
}

/**
 * The delay in milliseconds before attempt `attempt` + 1, for attempt = 0, 1, 2…: half of
 * min(maxMs, baseMs · 2^attempt) for certain and up to the other half at random, so that clients which
 * failed together do not return together.
 */
export function backoff(attempt: number, options: BackoffOptions): number {
  const ceilingMs = Math.min(options.maxMs, options.baseMs * 2 ** Math.min(attempt, 30));
  const random = options.random ?? Math.random;
  return ceilingMs / 2 + (ceilingMs / 2) * random();
}

/** Resolves after `delayMs`, or rejects with the signal's reason if it is aborted first. */
export function sleep(delayMs: number, clock: Clock = systemClock, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export interface RetryOptions extends BackoffOptions {
  /** How often `fn` may be called in all; Infinity keeps trying until the signal is aborted. */
  readonly attempts: number;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  /** Says whether an error is worth another attempt; without it every error is. */
  readonly isRetryable?: (error: unknown) => boolean;
}

/** Calls `fn` until it succeeds; rejects with its last error, or with the signal's reason. */
export async function retry<T>(fn: (attempt: number) => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    options.signal?.throwIfAborted();
    try {
      return await fn(attempt);
    } catch (error) {
      const isLast = attempt + 1 >= options.attempts;
      if (isLast || options.isRetryable?.(error) === false) throw error;
      await sleep(backoff(attempt, options), options.clock, options.signal);
    }
  }
}
