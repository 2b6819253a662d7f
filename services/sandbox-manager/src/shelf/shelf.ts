/**
 * Owns values that are prepared once per key and shared: a task's trees, a harness. Concurrent askers wait for
 * the same preparation; a failure is not kept, so that a passing one can be tried again.
 */
export class Shelf<T> {
  readonly #ready = new Map<string, Promise<T>>();

  /** Whether it is prepared, or being prepared. */
  has(key: string): boolean {
    return this.#ready.has(key);
  }

  get(key: string, prepare: () => Promise<T>): Promise<T> {
    const known = this.#ready.get(key);
    if (known !== undefined) return known;
    const made = prepare();
    this.#ready.set(key, made);
    made.catch(() => this.#ready.delete(key));
    return made;
  }
}
