/**
 * Owns reading Quarto's Deno tests: `[smoke] name ... ok (3s)`. Temporary files in names are numbered in order of
 * appearance, so that names repeat between runs. A test without a status has failed; the explanation of
 * failures ends the results.
 */
import type { Observations } from "../../results/observations.js";
import type { LogParser, ParserDefinition } from "../types.js";

const TEST = /\[(?:smoke|unit)\]/;
const TEMPORARY = [/\/tmp\/(\w+)\.qmd/, /\/tmp\/(\w+)\//] as const;
const MAX_RESULT_CHARACTERS = 65_536;

export const quartoCli: ParserDefinition = {
  name: "quarto-cli",
  version: 1,
  reads: "Deno's tests in Quarto",
  create: (into) => new Quarto(into),
};

class Quarto implements LogParser {
  readonly #into: Observations;
  readonly #numbers = new Map<string, number>();
  #hasEnded = false;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(raw: string): void {
    if (this.#hasEnded || raw.length > MAX_RESULT_CHARACTERS) return;
    if (raw.includes("ERRORS") || raw.includes("failures:")) {
      this.#hasEnded = true;
      return;
    }
    if (!TEST.test(raw) || isReport(raw)) return;
    const line = this.#numbered(raw);
    const dots = line.indexOf("...");
    const name = (dots < 0 ? line : line.slice(0, dots)).trim();
    const outcome = dots < 0 ? "" : line.slice(dots);
    if (/\bok\b/.test(outcome)) this.#into.tests.add(name, "passed");
    else if (outcome.includes("FAILED") || this.#into.tests.get(name) === undefined)
      this.#into.tests.add(name, "failed");
  }

  #numbered(line: string): string {
    let numbered = line;
    for (const pattern of TEMPORARY) {
      const found = pattern.exec(numbered);
      if (found === null) continue;
      const number = this.#numbers.get(found[0]) ?? this.#numbers.size;
      this.#numbers.set(found[0], number);
      numbered = numbered.replaceAll(found[0], `/tmp/${number}`);
    }
    return numbered;
  }
}

/** Lines of the summary and of the program's own log quote tests. */
function isReport(line: string): boolean {
  if (line.startsWith("test result:") || /\bINFO\b/.test(line)) return true;
  return line.includes("passed") && line.includes("failed") && line.includes("steps");
}
