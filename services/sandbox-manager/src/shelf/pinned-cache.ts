/**
 * Owns values that are costly to make, take space and are shared while in use: made once per key, leased, and given
 * back when nobody leases them and they are too many bytes or too old.
 * Does not know what the values are. Time is the injected clock's.
 *
 * P1  A leased value is never given back, however large or old.
 * P2  Concurrent askers wait for one making; a failure is not kept.
 */
import type { Clock } from "@mortise/kernel";

export interface Evictable {
  /** Space it takes; absent when nobody knows, then only its age counts. */
  readonly bytes?: number;
  release(): Promise<void>;
}

export interface CacheLease<T> {
  readonly value: T;
  /** Idempotent. */
  release(): void;
}

export interface CacheLimits {
  readonly maxBytes: number;
  /** Since the last lease ended. */
  readonly maxAgeMs: number;
}

interface Entry<T> {
  readonly making: Promise<T>;
  value: T | undefined;
  nLeases: number;
  usedAt: number;
}

export class PinnedCache<T extends Evictable> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #limits: CacheLimits;
  readonly #clock: Clock;
  readonly #onFault: (error: unknown) => void;

  /** `onFault` hears of values that could not be given back. */
  constructor(limits: CacheLimits, clock: Clock, onFault: (error: unknown) => void) {
    this.#limits = limits;
    this.#clock = clock;
    this.#onFault = onFault;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Bytes of all values, as far as they are known. */
  get bytes(): number {
    return [...this.#entries.values()].reduce((sum, { value }) => sum + (value?.bytes ?? 0), 0);
  }

  /** The value, made if it is not there (P2). Whoever gets it holds it until `release`. */
  async lease(key: string, make: () => Promise<T>): Promise<CacheLease<T>> {
    const entry = this.#entries.get(key) ?? this.#begin(key, make);
    entry.nLeases++;
    let isHeld = true;
    const release = () => {
      if (!isHeld) return;
      isHeld = false;
      entry.nLeases--;
      entry.usedAt = this.#clock.now();
      this.evict();
    };
    try {
      return { value: await entry.making, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Gives back what is over the limits, the longest unused first (P1). */
  evict(): void {
    const idle = [...this.#entries].filter(([, { nLeases, value }]) => nLeases === 0 && value !== undefined);
    idle.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    let bytes = this.bytes;
    for (const [key, { value, usedAt }] of idle) {
      const isOld = this.#clock.now() - usedAt > this.#limits.maxAgeMs;
      if (!isOld && bytes <= this.#limits.maxBytes) continue;
      bytes -= value?.bytes ?? 0;
      this.#entries.delete(key);
      value?.release().catch(this.#onFault);
    }
  }

  /** Gives everything back; resolves when that is done. Nothing may be leased afterwards. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    const made = await Promise.allSettled(entries.map(({ making }) => making));
    const released = made.map((each) => (each.status === "fulfilled" ? each.value.release() : undefined));
    for (const each of await Promise.allSettled(released))
      if (each.status === "rejected") this.#onFault(each.reason);
  }

  #begin(key: string, make: () => Promise<T>): Entry<T> {
    const entry: Entry<T> = { making: make(), value: undefined, nLeases: 0, usedAt: this.#clock.now() };
    this.#entries.set(key, entry);
    entry.making.then(
      (value) => {
        entry.value = value;
        this.evict();
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry;
  }
}
