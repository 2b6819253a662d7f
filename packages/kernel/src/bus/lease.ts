/**
 * Owns being the only one: a key in a KV bucket with a lifetime, renewed at a third of it.
 * Does not stop anybody by itself: writers pass the fence on, and receivers refuse a lower one.
 *
 * L1  The fence of a later holder is higher than that of every earlier one.
 * L2  A holder that cannot renew within the lifetime learns that it lost the lease, on its own clock, before
 *     another can be told that it has it.
 */
import { type Cancel, type Clock, systemClock } from "../clock.js";
import { sleep } from "../retry.js";
import type { Kv } from "./kv.js";

export interface LeaseOptions {
  /** Who holds it, for people who look at the bucket. */
  readonly holder: string;
  /** Lifetime of the bucket's entries, milliseconds. */
  readonly ttlMs: number;
  readonly clock?: Clock;
  /** Gives up waiting for the lease. */
  readonly signal?: AbortSignal;
}

export class Lease {
  /** Revision at which the lease was won (L1). */
  readonly fence: number;
  /** Resolves when the lease is no longer held, by loss; never after a release. */
  readonly lost: Promise<void>;
  readonly #kv: Kv;
  readonly #key: string;
  readonly #value: Uint8Array;
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #announceLoss: () => void;
  #revision: number;
  #heldUntil: number;
  #cancel: Cancel = () => {};
  #isOver = false;
  #renewing: Promise<void> | undefined;

  private constructor(
    kv: Kv,
    key: string,
    value: Uint8Array,
    options: LeaseOptions,
    won: { fence: number; at: number },
  ) {
    this.#kv = kv;
    this.#key = key;
    this.#value = value;
    this.#ttlMs = options.ttlMs;
    this.#clock = options.clock ?? systemClock;
    this.fence = won.fence;
    this.#revision = won.fence;
    this.#heldUntil = won.at + options.ttlMs;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.lost = promise;
    this.#announceLoss = resolve;
    this.#schedule();
  }

  /** Waits until the key is free and takes it. Rejects with the signal's reason. */
  static async acquire(kv: Kv, key: string, options: LeaseOptions): Promise<Lease> {
    const clock = options.clock ?? systemClock;
    const value = new TextEncoder().encode(options.holder);
    for (;;) {
      options.signal?.throwIfAborted();
      // Counted from before the request: the server's lifetime cannot have begun earlier (L2).
      const at = clock.now();
      const fence = await kv.create(key, value);
      if (fence !== undefined) return new Lease(kv, key, value, options, { fence, at });
      await sleep(options.ttlMs / 6, clock, options.signal);
    }
  }

  /** Gives the lease up, so that a waiting holder need not wait for the lifetime to pass. */
  async release(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancel();
    await this.#renewing;
    // Only if it is still ours: a plain deletion would free the lease of the next holder.
    const entry = await this.#kv.get(this.#key);
    if (entry?.revision === this.#revision) await this.#kv.delete(this.#key);
  }

  #schedule(): void {
    this.#cancel = this.#clock.after(this.#ttlMs / 3, () => {
      this.#renewing = this.#renew().finally(() => {
        this.#renewing = undefined;
      });
    });
  }

  async #renew(): Promise<void> {
    const at = this.#clock.now();
    const cancelDeadline = this.#clock.after(this.#heldUntil - at, () => this.#lose()); // L2
    try {
      const revision = await this.#kv.update(this.#key, this.#value, this.#revision);
      if (revision === undefined) {
        this.#lose();
        return;
      }
      this.#revision = revision;
      this.#heldUntil = at + this.#ttlMs;
    } catch {
      // The bus is away; the deadline decides, and the next renewal tries again until then.
    } finally {
      cancelDeadline();
    }
    if (this.#clock.now() >= this.#heldUntil) this.#lose();
    else if (!this.#isOver) this.#schedule();
  }

  #lose(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancel();
    this.#announceLoss();
  }
}
