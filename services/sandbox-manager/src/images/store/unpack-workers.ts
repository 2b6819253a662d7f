/**
 * Owns the threads that unpack layers: so many at a time, kept for the next layer. A layer that waits for the ones
 * below it does not count, or two waiting layers could keep the awaited one from ever starting.
 */
import type { UnpackedLayer, UnpackOptions } from "../layer/unpack.js";
import { UnpackThread } from "./unpack-thread.js";

export class UnpackWorkers {
  readonly #concurrency: number;
  readonly #idle: UnpackThread[] = [];
  readonly #queue: (() => void)[] = [];
  #nRunning = 0;

  constructor(concurrency: number) {
    this.#concurrency = concurrency;
  }

  /** As `unpackLayer`, on a thread. An aborted signal ends it. */
  async unpack(
    open: () => AsyncIterable<Uint8Array>,
    options: UnpackOptions,
    signal: AbortSignal | undefined,
  ): Promise<UnpackedLayer> {
    await this.#enter();
    try {
      signal?.throwIfAborted();
      const thread = this.#idle.pop() ?? new UnpackThread();
      const lower = () => this.#outside(options.lower);
      try {
        const layer = await thread.unpack(open, { ...options, lower }, signal);
        this.#idle.push(thread);
        return layer;
      } catch (error) {
        await thread.stop();
        throw error;
      }
    } finally {
      this.#leave();
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((thread) => thread.stop()));
  }

  async #outside<T>(wait: () => Promise<T>): Promise<T> {
    this.#leave();
    try {
      return await wait();
    } finally {
      this.#nRunning += 1;
    }
  }

  async #enter(): Promise<void> {
    if (this.#nRunning < this.#concurrency) this.#nRunning += 1;
    else
      await new Promise<void>((resolve) => {
        this.#queue.push(resolve);
      });
  }

  /** The place goes to the next in the queue, if there is one and it is free. */
  #leave(): void {
    this.#nRunning -= 1;
    if (this.#nRunning >= this.#concurrency) return;
    const next = this.#queue.shift();
    if (next === undefined) return;
    this.#nRunning += 1;
    next();
  }
}
