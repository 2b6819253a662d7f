/**
 * Owns reading PHPUnit's `--testdox`: a line with the class and its namespace in parentheses, then a marked line
 * for each test. A name is `Class > test`.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";

const SUITE = /^(\w.+) \(.+\)$/;
const TEST = /^\s*([✔✘↩])\s*(.*)$/;
const STATUSES: Readonly<Record<string, LoggedStatus>> = { "✔": "passed", "✘": "failed", "↩": "skipped" };
const MAX_RESULT_CHARACTERS = 65_536;

export const phpunit: ParserDefinition = {
  name: "phpunit",
  version: 1,
  reads: "PHPUnit `--testdox`",
  create: (into) => new Phpunit(into),
};

class Phpunit implements LogParser {
  readonly #into: Observations;
  #suite: string | undefined;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(line: string): void {
    if (line.length > MAX_RESULT_CHARACTERS) return;
    // Without the check of the end the pattern would try every parenthesis of a long line.
    const suite = line.endsWith(")") ? SUITE.exec(line) : null;
    if (suite !== null) {
      this.#suite = suite[1]!;
      return;
    }
    const test = TEST.exec(line);
    if (test !== null && this.#suite !== undefined)
      this.#into.tests.add(`${this.#suite} > ${test[2]!}`, STATUSES[test[1]!]!);
  }
}
