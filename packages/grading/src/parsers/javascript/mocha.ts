/**
 * Owns reading Mocha's spec reporter. The summary (`12 passing`) ends the results; failures are explained after
 * it, numbered like failed tests.
 *
 *   mocha        `suite > sub-suite > test`, known as `test` too
 *   highlightjs  the nearest suite and the test, joined by a dot, as its records spell it
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";
import { IndentedSuites } from "./suites.js";

const SUMMARY = /^[ \t]*(\d+) passing\b/;
const FAILED = /^\d+\)\s*(.*)$/;
const DURATION = /\s*\(\d+ms\)/g;
const MAX_RESULT_CHARACTERS = 65_536;

export const mocha: ParserDefinition = {
  name: "mocha",
  version: 1,
  reads: "Mocha's spec reporter",
  create: (into) => {
    const suites = new IndentedSuites();
    return new Mocha(into, {
      suite: (line) => suites.enter(line),
      names: (test) => [[...suites.path, test].join(" > "), test],
    });
  },
};

export const highlightjs: ParserDefinition = {
  name: "highlightjs",
  version: 1,
  reads: "Mocha's spec reporter in highlight.js",
  create: (into) => {
    let suite: string | undefined;
    return new Mocha(into, {
      suite: (line) => {
        if (line.startsWith("  ")) suite = line.trim();
      },
      names: (test) => [suite === undefined ? test : `${suite}.${test}`],
    });
  },
};

interface Naming {
  suite(line: string): void;
  names(test: string): readonly string[];
}

class Mocha implements LogParser {
  readonly #into: Observations;
  readonly #naming: Naming;
  #hasEnded = false;

  constructor(into: Observations, naming: Naming) {
    this.#into = into;
    this.#naming = naming;
  }

  line(line: string): void {
    if (this.#hasEnded || line.length > MAX_RESULT_CHARACTERS) return;
    if (SUMMARY.test(line)) {
      this.#hasEnded = true;
      return;
    }
    const result = resultOf(line.trim());
    if (result === undefined) this.#naming.suite(line);
    else for (const name of new Set(this.#naming.names(result[0]))) this.#into.tests.add(name, result[1]);
  }
}

function resultOf(line: string): readonly [name: string, status: LoggedStatus] | undefined {
  if (line.startsWith("✓") || line.startsWith("✔")) return [withoutDuration(line.slice(1)), "passed"];
  if (line.startsWith("- ") && line.length > 2) return [line.slice(2), "skipped"];
  const failed = FAILED.exec(line);
  return failed === null ? undefined : [withoutDuration(failed[1]!), "failed"];
}

function withoutDuration(name: string): string {
  return name.replace(DURATION, "").trim();
}
