/** Owns the suites a test stands in where a log shows them by indentation only. */
export class IndentedSuites {
  readonly #open: { readonly name: string; readonly indent: number }[] = [];

  /** Takes a line that is no result; one without indentation changes nothing. */
  enter(line: string): void {
    const indent = line.length - line.trimStart().length;
    if (indent === 0) return;
    while (this.#open.length > 0 && this.#open.at(-1)!.indent >= indent) this.#open.pop();
    this.#open.push({ name: line.trim(), indent });
  }

  get path(): readonly string[] {
    return this.#open.map(({ name }) => name);
  }

  clear(): void {
    this.#open.length = 0;
  }

  /** As another was when this is called. */
  copy(): IndentedSuites {
    const copy = new IndentedSuites();
    copy.#open.push(...this.#open);
    return copy;
  }
}
