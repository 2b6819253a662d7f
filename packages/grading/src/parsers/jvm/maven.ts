/**
 * Owns reading Maven, which names no test that passes. The records run one test a command, so the trace of the
 * command (`-Dtest=Name`) names it and the build's end tells how it went. Traces and ends may change places;
 * the first end belongs to the first trace.
 */
import type { Observations } from "../../results/observations.js";
import type { LogParser, ParserDefinition } from "../types.js";

const OPTION = "-Dtest=";

export const maven: ParserDefinition = {
  name: "maven",
  version: 1,
  reads: "Maven, one test a command",
  create: (into) => new Maven(into),
};

class Maven implements LogParser {
  readonly #into: Observations;
  readonly #tests: string[] = [];
  readonly #ends: boolean[] = [];

  constructor(into: Observations) {
    this.#into = into;
  }

  line(raw: string): void {
    const option = raw.lastIndexOf(OPTION);
    if (option >= 0) {
      const name = /^\S+/.exec(raw.slice(option + OPTION.length))?.[0];
      if (name !== undefined) this.#tests.push(name);
    }
    if (!raw.includes("BUILD ")) return;
    const line = raw.trimEnd();
    if (line.endsWith("BUILD SUCCESS")) this.#ends.push(true);
    else if (line.endsWith("BUILD FAILURE")) this.#ends.push(false);
  }

  end(): void {
    this.#tests.forEach((name, at) => {
      const hasPassed = this.#ends[at];
      if (hasPassed !== undefined) this.#into.tests.add(name, hasPassed ? "passed" : "failed");
    });
  }
}
