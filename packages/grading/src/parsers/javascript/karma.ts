/**
 * Owns reading Karma's spec reporter as Preact's records spell it: suites by growing indentation, joined with
 * " > ". A suite is entered when the indentation grows and left when it shrinks; one that follows another at
 * the same depth does not replace it, and the line that shrinks names nothing: so the records have it.
 */
import type { Observations } from "../../results/observations.js";
import type { LogParser, ParserDefinition } from "../types.js";

const TEST = /^\s*([✔✖])\s(.*)$/;
const MAX_RESULT_CHARACTERS = 65_536;

export const karma: ParserDefinition = {
  name: "karma",
  version: 1,
  reads: "Karma's spec reporter",
  create: (into) => new Karma(into),
};

class Karma implements LogParser {
  readonly #into: Observations;
  readonly #suites: string[] = [];
  #indent = -1;
  #state: "waiting" | "running" | "ended" = "waiting";

  constructor(into: Observations) {
    this.#into = into;
  }

  line(line: string): void {
    if (this.#state === "ended" || line.length > MAX_RESULT_CHARACTERS) return;
    if (line.startsWith("SUMMARY:")) this.#state = "ended";
    else if (line.includes("Starting browser")) this.#state = "running";
    else if (this.#state === "running") this.#runLine(line);
  }

  #runLine(line: string): void {
    const test = TEST.exec(line);
    if (test === null) this.#suiteLine(line);
    else {
      const name = [...this.#suites, test[2]!].join(" > ");
      this.#into.tests.add(name, test[1] === "✔" ? "passed" : "failed");
    }
  }

  #suiteLine(line: string): void {
    // The last space before a name belongs to the name's separator, not to its depth.
    const indent = line.length - line.trimStart().length - 1;
    if (indent <= 0) return;
    if (indent > this.#indent) this.#suites.push(line.trimStart());
    else if (indent < this.#indent) this.#suites.pop();
    this.#indent = indent;
  }
}
