/**
 * Owns the acknowledgement of groups: the durable's handler of a group waits here until the version that
 * consumed it is committed (C5). A redelivered group of an already committed step passes at once, and is
 * therefore acknowledged and never trained again.
 * Does not own the order of training: that comes from reading the stream itself.
 */
import { MortiseError } from "@mortise/contracts";

interface Waiting {
  readonly sequence: number;
  pass(): void;
  refuse(error: unknown): void;
}

export class CommitGate {
  #cursor: number;
  #waiting: Waiting[] = [];

  /** @param cursor sequence on GROUPS up to which groups are committed. */
  constructor(cursor: number) {
    this.#cursor = cursor;
  }

  get cursor(): number {
    return this.#cursor;
  }

  /** Resolves once the group at `sequence` is committed; rejects (retryable) when `signal` aborts first. */
  async committed(sequence: number, signal: AbortSignal): Promise<void> {
    if (sequence <= this.#cursor) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Waiting = { sequence, pass: resolve, refuse: reject };
    this.#waiting.push(entry);
    const onAbort = () => entry.refuse(notCommitted(sequence));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#waiting = this.#waiting.filter((other) => other !== entry);
    }
  }

  /** Everything up to `cursor` is committed. */
  advance(cursor: number): void {
    this.#cursor = Math.max(this.#cursor, cursor);
    for (const entry of this.#waiting) if (entry.sequence <= this.#cursor) entry.pass();
  }
}

function notCommitted(sequence: number): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRANSPORT_UNAVAILABLE",
    message: `The trainer stops before the group at sequence ${sequence} is committed.`,
  });
}
