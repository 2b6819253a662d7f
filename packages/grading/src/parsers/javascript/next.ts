/**
 * Owns reading the two runners of alibaba-fusion/next: Karma (a run for each component, started through
 * xvfb-run) and Cypress (`Running: file)`, then the suite's name below two empty lines).
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";
import { IndentedSuites } from "./suites.js";

const NOISE = ["ERROR", "LOG", "WARN", "Check", "in"] as const;
const CYPRESS_FAILED = /^\s{4}\d+\)\s(.*)$/;
const CYPRESS_PASSED = /^\s{4}✓\s(.*)\(/;
const MAX_RESULT_CHARACTERS = 65_536;

export const nextKarma: ParserDefinition = {
  name: "next-karma",
  version: 1,
  reads: "Karma in alibaba-fusion/next",
  create: (into) => new NextKarma(into),
};

export const nextCypress: ParserDefinition = {
  name: "next-cypress",
  version: 1,
  reads: "Cypress in alibaba-fusion/next",
  create: (into) => new NextCypress(into),
};

/** Of a run that starts its browser more than once, the last start counts. */
class NextKarma implements LogParser {
  readonly #into: Observations;
  #suites = new IndentedSuites();
  #suitesBefore = new IndentedSuites();
  #results: [name: string, status: LoggedStatus][] = [];
  #isRunning = false;
  #isInError = false;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(line: string): void {
    if (line.length > MAX_RESULT_CHARACTERS) return;
    if (line.includes(" xvfb-run ")) {
      this.end();
      this.#isRunning = true;
      this.#suitesBefore = this.#suites.copy();
    } else if (line.includes("Starting browser Chrome")) {
      this.#results = [];
      this.#suites = this.#suitesBefore.copy();
    } else if (this.#isRunning && !this.#isErrorText(line)) this.#runLine(line);
  }

  end(): void {
    for (const [name, status] of this.#results) this.#into.tests.add(name, status);
    this.#results = [];
    this.#isRunning = false;
  }

  #isErrorText(line: string): boolean {
    if (/AssertionError:\s+#/.test(line)) this.#isInError = true;
    else if (line === "") this.#isInError = false;
    return this.#isInError;
  }

  #runLine(line: string): void {
    if (line.startsWith("TOTAL")) {
      this.end();
      return;
    }
    const text = line.trim();
    if (NOISE.some((word) => text.startsWith(word))) return;
    const mark = [line.indexOf("✗"), line.indexOf("✓")].filter((at) => at >= 0).sort((a, b) => a - b)[0];
    if (mark === undefined) {
      this.#suites.enter(line);
      return;
    }
    const name = [...this.#suites.path, line.slice(mark + 1).trimStart()].join(" - ");
    this.#results.push([name, line.includes("✗") ? "failed" : "passed"]);
  }
}

class NextCypress implements LogParser {
  readonly #into: Observations;
  #suite: string | undefined;
  /** Lines since a headline; the suite's name is the third. */
  #sinceHeadline: number | undefined;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(line: string): void {
    if (line.length > MAX_RESULT_CHARACTERS) return;
    if (line.includes("Running:") && line.endsWith(")")) {
      this.#sinceHeadline = 0;
      return;
    }
    if (this.#sinceHeadline !== undefined) this.#headline(line);
    else if (this.#suite !== undefined) this.#test(line);
  }

  #test(line: string): void {
    const failed = CYPRESS_FAILED.exec(line);
    const passed = failed === null ? CYPRESS_PASSED.exec(line) : null;
    const name = (failed ?? passed)?.[1];
    if (name !== undefined)
      this.#into.tests.add(`${this.#suite}: ${name.trim()}`, failed === null ? "passed" : "failed");
  }

  #headline(line: string): void {
    this.#sinceHeadline! += 1;
    if (this.#sinceHeadline! < 3 && line === "") return;
    if (this.#sinceHeadline === 3 && line.startsWith("  ")) this.#suite = line.slice(2);
    this.#sinceHeadline = undefined;
  }
}
