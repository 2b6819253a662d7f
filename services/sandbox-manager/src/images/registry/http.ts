/**
 * Owns single requests to a registry that survive what registries do: rate limits, restarts, dropped connections.
 * Waits as long as the registry says, else ever longer; gives up after a number of attempts.
 * Does not know tokens or what is asked for.
 */
import { MortiseError } from "@mortise/contracts";
import { backoff, type Clock, sleep, systemClock } from "@mortise/kernel";

export interface HttpOptions {
  /** How often one request may be made in all. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** Longest wait a registry may ask for; more is an error, so that a trial's queue moves on. */
  readonly maxRetryAfterMs: number;
  /** A connection that delivers nothing for this long is dropped and tried again. */
  readonly stallMs: number;
  readonly clock: Clock;
}

export const DEFAULT_HTTP: HttpOptions = {
  attempts: 6,
  baseDelayMs: 500,
  maxDelayMs: 30_000,
  maxRetryAfterMs: 15 * 60_000,
  stallMs: 60_000,
  clock: systemClock,
};

export interface Ask {
  readonly url: URL;
  readonly method?: "GET" | "HEAD" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal | undefined;
}

/** A failure that may pass; `retryAfterMs` when the registry said how long. */
export class Passing extends Error {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs?: number, cause?: unknown) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** Calls `attempt` until it does not throw `Passing`. Rejects with MORTISE_SANDBOX_IMAGE_REGISTRY. */
export async function persist<T>(
  attempt: () => Promise<T>,
  options: HttpOptions,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Passing)) throw error;
      await pause(error, failures, options, signal);
    }
  }
}

/** Waits before the next attempt, or throws when there is none. */
export async function pause(
  error: Passing,
  failures: number,
  options: HttpOptions,
  signal: AbortSignal | undefined,
): Promise<void> {
  const asked = error.retryAfterMs;
  if (failures >= options.attempts || (asked !== undefined && asked > options.maxRetryAfterMs))
    throw new MortiseError({
      code: "MORTISE_SANDBOX_IMAGE_REGISTRY",
      message: `${error.message} (attempt ${failures}).`,
      cause: error,
      ...(asked === undefined ? {} : { retryAfterMs: asked }),
    });
  const delayMs = backoff(failures - 1, { baseMs: options.baseDelayMs, maxMs: options.maxDelayMs });
  await sleep(Math.max(asked ?? 0, delayMs), options.clock, signal);
}

/** One request. Throws `Passing` for failures of the network, 429 and 5xx; other statuses are the caller's. */
export async function ask(
  { url, method, headers, body, signal }: Ask,
  options: HttpOptions,
): Promise<Response> {
  const stalled = new AbortController();
  const cancel = options.clock.after(options.stallMs, () => stalled.abort(new Error("no answer in time")));
  let response: Response;
  try {
    response = await fetch(url, {
      method: method ?? "GET",
      // A transfer encoding applied on the way would change the bytes digests are made of.
      headers: { "accept-encoding": "identity", ...headers },
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? stalled.signal : AbortSignal.any([signal, stalled.signal]),
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw new Passing(`${place(url)} cannot be reached: ${reason(error)}`, undefined, error);
  } finally {
    cancel();
  }
  if (response.status !== 429 && response.status < 500) return response;
  const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), options.clock.now());
  await response.body?.cancel();
  throw new Passing(`${place(url)} answers ${response.status}`, retryAfterMs);
}

/** The chunks of a body. Throws `Passing` when the connection breaks or delivers nothing for too long. */
export async function* bodyOf(
  response: Response,
  url: URL,
  options: HttpOptions,
): AsyncGenerator<Uint8Array> {
  if (response.body === null) return;
  const reader = response.body.getReader();
  let isStalled = false;
  try {
    for (;;) {
      const cancel = options.clock.after(options.stallMs, () => {
        isStalled = true;
        void reader.cancel();
      });
      const { done, value } = await reader.read().finally(cancel);
      if (isStalled) throw new Error(`nothing arrived for ${options.stallMs} ms`);
      if (done) return;
      yield value;
    }
  } catch (error) {
    throw new Passing(`${place(url)} broke off: ${reason(error)}`, undefined, error);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Seconds or an HTTP date, as milliseconds from now. */
export function parseRetryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^[0-9]{1,9}$/.test(header.trim())) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** A URL without its query, which may hold a signature. */
export function place(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

export function reason(error: unknown): string {
  const { message, cause } = error as Error;
  const inner = (cause as { code?: string; message?: string } | undefined)?.code;
  return inner === undefined ? message : `${message} (${inner})`;
}
