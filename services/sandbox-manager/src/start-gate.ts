/**
 * Owns how many sandboxes are being started at once. Starting more than about two per core makes every start
 * slower than waiting would; who is next is fair between runs and groups (fair-queue.ts).
 * Does not limit how many sandboxes live (the consumer's concurrency does).
 */
import { availableParallelism } from "node:os";
import { FairQueue, type FlowKey } from "./fair-queue.js";

const STARTS_PER_CORE = 2;

export interface PassOptions {
  /** Share of the gate's attention, in ordinary starts. */
  readonly cost?: number;
  /** Ends the waiting, with its reason; not what has begun. */
  readonly signal?: AbortSignal;
}

export class StartGate {
  readonly #limit: number;
  readonly #waiting = new FairQueue<() => void>();
  #nStarting = 0;

  constructor(limit: number = STARTS_PER_CORE * availableParallelism()) {
    this.#limit = limit;
  }

  /** How many are being started now. */
  get starting(): number {
    return this.#nStarting;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  async pass<T>(key: FlowKey, start: () => Promise<T>, options: PassOptions = {}): Promise<T> {
    if (this.#nStarting >= this.#limit) await this.#turn(key, options);
    else this.#nStarting++;
    try {
      return await start();
    } finally {
      // The place goes to the next in line without becoming free in between.
      const next = this.#waiting.shift();
      if (next !== undefined) next();
      else this.#nStarting--;
    }
  }

  #turn(key: FlowKey, { cost, signal }: PassOptions): Promise<void> {
    signal?.throwIfAborted();
    return new Promise<void>((resolve, reject) => {
      const leave = () => {
        if (withdraw()) reject(signal?.reason);
      };
      const withdraw = this.#waiting.push(
        key,
        () => {
          signal?.removeEventListener("abort", leave);
          resolve();
        },
        cost,
      );
      signal?.addEventListener("abort", leave, { once: true });
    });
  }
}
