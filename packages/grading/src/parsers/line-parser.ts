/**
 * Owns parsers that need one line at a time and no memory between lines. Does not know any format.
 */
import type { Observations } from "../results/observations.js";
import type { LoggedStatus } from "../results/status.js";
import type { LogParser, ParserDefinition } from "./types.js";

/** Longer lines are output of tests, and patterns need not be run over them. */
const MAX_RESULT_CHARACTERS = 65_536;

/** A line's test, with other spellings if records use some, and how it ended; undefined for output. */
export type LineResult = readonly [names: string | readonly string[], status: LoggedStatus] | undefined;

/**
 * Defines a parser by what it reads from a line.
 * @param read gets the line without white space at its ends
 */
export function linewise(
  name: string,
  reads: string,
  read: (line: string, raw: string) => LineResult,
): ParserDefinition {
  return { name, version: 1, reads, create: (into) => new Linewise(into, read) };
}

class Linewise implements LogParser {
  readonly #into: Observations;
  readonly #read: (line: string, raw: string) => LineResult;

  constructor(into: Observations, read: (line: string, raw: string) => LineResult) {
    this.#into = into;
    this.#read = read;
  }

  line(raw: string): void {
    if (raw.length > MAX_RESULT_CHARACTERS || raw === "") return;
    const result = this.#read(raw.trim(), raw);
    if (result === undefined) return;
    const [names, status] = result;
    if (typeof names === "string") this.#into.tests.add(names, status);
    else for (const name of new Set(names)) this.#into.tests.add(name, status);
  }
}
