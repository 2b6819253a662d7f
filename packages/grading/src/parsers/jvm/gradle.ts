/**
 * Owns reading Gradle's test log: `com.example.Test > method PASSED`. Output of parallel work may come between
 * a name and its status, which then stands alone on a line.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";

const STATUSES: Readonly<Record<string, LoggedStatus>> = {
  PASSED: "passed",
  FAILED: "failed",
  SKIPPED: "skipped",
};
const NAME = /^[^>]\S*\s+>\s+\S+$/;
const MAX_RESULT_CHARACTERS = 65_536;

export const gradle: ParserDefinition = {
  name: "gradle",
  version: 1,
  reads: "Gradle's test log",
  create: (into) => new Gradle(into),
};

class Gradle implements LogParser {
  readonly #into: Observations;
  #pending: string | undefined;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(raw: string): void {
    if (raw.length > MAX_RESULT_CHARACTERS) return;
    const line = raw.trim();
    const space = line.lastIndexOf(" ");
    const status = STATUSES[line.slice(space + 1)];
    if (status === undefined) {
      if (line.includes(" > ") && NAME.test(line)) this.#pending = line;
      return;
    }
    const name = space < 0 ? this.#pending : line.slice(0, space).trimEnd();
    this.#pending = undefined;
    if (name !== undefined && name !== "" && !name.startsWith(">")) this.#into.tests.add(name, status);
  }
}
