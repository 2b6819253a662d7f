/**
 * Owns reading runs whose suites show by indentation, joined with " - ": Jest in Calypso, Mocha in Lighthouse.
 * A log holds several runs; each starts with its command or headline and ends at its summary.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";
import { IndentedSuites } from "./suites.js";

interface Dialect {
  /** Starts a run. */
  starts(line: string): boolean;
  /** Ends it: failures are explained after it. */
  ends(line: string): boolean;
  /** The result on a line without white space at its ends. */
  result(line: string): readonly [name: string, status: LoggedStatus] | undefined;
  /** Suites of one run are not those of the next. */
  readonly clearsSuites: boolean;
  /** Its records lost the first suite of a run: it stands where the headline's white space was cut off. */
  readonly dropsFirstSuite?: boolean;
  readonly join: (suites: readonly string[], test: string) => string;
}

const MS_AT_END = /\(\d+ms\)$/;
const MOCHA_MS = /\s\(\d+m+s\)$/;
const MAX_RESULT_CHARACTERS = 65_536;

export const calypso = define("calypso", "Jest in wp-calypso", {
  starts: (line) => line.includes(" ./node_modules/.bin/jest "),
  ends: (line) => line.startsWith("Test Suites") || line.startsWith("  ● "),
  result: (line) => {
    const status = line.startsWith("✓ ") ? "passed" : line.startsWith("✕ ") ? "failed" : undefined;
    return status === undefined ? undefined : [line.slice(2).replace(MS_AT_END, ""), status];
  },
  clearsSuites: false,
  join: (suites, test) => `${suites.join(" - ")} - ${test}`.trim(),
});

export const lighthouseMocha = define("lighthouse-mocha", "Mocha in Lighthouse", {
  starts: (line) => /running\s\d+\stest\sfiles/.test(line),
  ends: (line) => /\d+\spassing/.test(line),
  result: (line) => {
    const passed = line.startsWith("✔ ");
    const failed = passed ? null : /^\d+\)\s(.*)$/.exec(line);
    if (!passed && failed === null) return undefined;
    return [(failed?.[1] ?? line.slice(2)).replace(MOCHA_MS, ""), passed ? "passed" : "failed"];
  },
  clearsSuites: true,
  dropsFirstSuite: true,
  join: (suites, test) => [...suites, test].join(" - "),
});

function define(name: string, reads: string, dialect: Dialect): ParserDefinition {
  return { name, version: 1, reads, create: (into) => new Indented(into, dialect) };
}

class Indented implements LogParser {
  readonly #into: Observations;
  readonly #dialect: Dialect;
  readonly #suites = new IndentedSuites();
  #isRunning = false;
  #isFirstLine = false;

  constructor(into: Observations, dialect: Dialect) {
    this.#into = into;
    this.#dialect = dialect;
  }

  line(line: string): void {
    if (line.length > MAX_RESULT_CHARACTERS) return;
    if (this.#dialect.starts(line)) {
      this.#isRunning = true;
      this.#isFirstLine = this.#dialect.dropsFirstSuite === true;
      if (this.#dialect.clearsSuites) this.#suites.clear();
    } else if (this.#isRunning && this.#dialect.ends(line)) this.#isRunning = false;
    else if (this.#isRunning) this.#runLine(line);
  }

  #runLine(line: string): void {
    const text = line.trim();
    const result = this.#dialect.result(text);
    if (result === undefined) this.#suites.enter(this.#isFirstLine ? text : line);
    else this.#into.tests.add(this.#dialect.join(this.#suites.path, result[0]), result[1]);
    if (text !== "") this.#isFirstLine = false;
  }
}
