/**
 * Owns reading the reporter of plotly.js: suites as `  - name :`, tests as `  * name : status`. A line that is not
 * deeper than the last suite leaves all suites.
 */
import type { Observations } from "../../results/observations.js";
import type { LogParser, ParserDefinition } from "../types.js";

const SUITE = /^\s+-\s+(\S.*?)\s+:/;
const TEST = /^\s+\*\s+(\S.*?)\s+:\s*(.*)$/;
const MAX_RESULT_CHARACTERS = 65_536;

export const plotly: ParserDefinition = {
  name: "plotly",
  version: 1,
  reads: "the reporter of plotly.js",
  create: (into) => new Plotly(into),
};

class Plotly implements LogParser {
  readonly #into: Observations;
  readonly #suites: string[] = [];
  #indent = 0;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(line: string): void {
    if (line.length > MAX_RESULT_CHARACTERS) return;
    const suite = SUITE.exec(line);
    const test = suite === null ? TEST.exec(line) : null;
    if (suite === null && test === null) return;
    const indent = line.length - line.trimStart().length;
    if (indent <= this.#indent) this.#suites.length = 0;
    if (suite !== null) {
      this.#suites.push(suite[1]!);
      this.#indent = indent;
      return;
    }
    const outcome = test![2]!.toLowerCase();
    const hasPassed = outcome.includes("ok") && !outcome.includes("failed");
    this.#into.tests.add([...this.#suites, test![1]!].join("."), hasPassed ? "passed" : "failed");
  }
}
