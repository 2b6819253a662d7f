/**
 * Owns how many containers of this host are being started at once: a start takes most of a core for its time, and more
 * of them than cores make each slower than waiting would. Served in order of arrival. Does not limit how many run.
 */
const LOOK_MS = 4;

export class Starts {
  readonly #limit: number;
  readonly #waiting: (() => void)[] = [];
  #nStarting = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Calls `begin` when it is its turn, and lets the next begin once `isUp` says yes or `begin` has settled.
   * @returns what `begin` returns
   */
  async pass<T>(begin: () => T | Promise<T>, isUp: () => boolean): Promise<T> {
    if (this.#nStarting >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#nStarting++;
    let isOver = false;
    const leave = (): void => {
      if (isOver) return;
      isOver = true;
      clearInterval(looking);
      // The place goes to the next in line without becoming free in between.
      const next = this.#waiting.shift();
      if (next === undefined) this.#nStarting--;
      else next();
    };
    const looking = setInterval(() => isUp() && leave(), LOOK_MS);
    try {
      return await begin();
    } finally {
      leave();
    }
  }
}
