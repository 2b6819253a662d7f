/**
 * Owns how many sandboxes are being started at once. Starting more than about two per core makes every start
 * slower than waiting would; callers are served in the order they came.
 * Does not limit how many sandboxes live (the consumer's concurrency does).
 */
export class StartGate {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #nStarting = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** How many are being started now. */
  get starting(): number {
    return this.#nStarting;
  }

  async pass<T>(start: () => Promise<T>): Promise<T> {
    if (this.#nStarting >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
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
}
