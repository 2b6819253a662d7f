/**
 * Owns what a runner of Python prints about how many tests it ran, held against the tests it names: more expected tests
 * reported passed than it counted were written by something else.
 */
import type { Observations } from "../../results/observations.js";
import { isPassing, type LoggedStatus } from "../../results/status.js";
import type { ParserContext } from "../types.js";

export class CountedPasses {
  readonly #into: Observations;
  readonly #expected: ReadonlySet<string>;
  readonly #passed = new Set<string>();
  #counted: number | undefined;

  constructor(into: Observations, { expected }: ParserContext) {
    this.#into = into;
    this.#expected = expected;
  }

  add(name: string, status: LoggedStatus): void {
    this.#into.tests.add(name, status);
    if (isPassing(status) && this.#expected.has(name)) this.#passed.add(name);
  }

  /** What a summary of the runner counted; those of several runs add up. */
  count(tests: number): void {
    this.#counted = (this.#counted ?? 0) + tests;
  }

  /** At the end of the log. @param hasStarted whether the runner has said that it began */
  end(hasStarted: boolean): void {
    const counted = this.#counted;
    if (counted !== undefined) this.#into.isComplete = true;
    else if (hasStarted) this.#into.isComplete = false;
    if (counted === undefined || this.#passed.size <= counted) return;
    const reason = `${this.#passed.size} expected tests are reported passed, the runner counted ${counted}`;
    this.#into.find("tamper", reason);
  }
}
