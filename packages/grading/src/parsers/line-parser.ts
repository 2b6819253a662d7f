/**
 * Owns parsers that need one line at a time and no memory between lines. Does not know any format.
 */
import { firstInk } from "../log/lines.js";
import type { Observations } from "../results/observations.js";
import type { LoggedStatus } from "../results/status.js";
import type { LogParser, ParserDefinition } from "./types.js";

/** Longer lines are output of tests, and patterns need not be run over them. */
const MAX_RESULT_CHARACTERS = 65_536;

/** A line's test, with other spellings if records use some, and how it ended; undefined for output. */
export type LineResult = readonly [names: string | readonly string[], status: LoggedStatus] | undefined;

export interface LineReading {
  readonly name: string;
  /** What prints such lines. */
  readonly reads: string;
  /** Characters a result can start with; any when absent. Most lines are output and are refused by it. */
  readonly startsWith?: string;
  /** @param line without white space at its ends */
  readonly read: (line: string, raw: string) => LineResult;
}

/** Defines a parser by what it reads from a line. */
export function linewise({ name, reads, startsWith, read }: LineReading): ParserDefinition {
  const starts =
    startsWith === undefined ? undefined : new Set([...startsWith].map((one) => one.charCodeAt(0)));
  return { name, version: 1, reads, create: (into) => new Linewise(into, read, starts) };
}

class Linewise implements LogParser {
  readonly #into: Observations;
  readonly #read: LineReading["read"];
  readonly starts: ReadonlySet<number> | undefined;

  constructor(into: Observations, read: LineReading["read"], starts: ReadonlySet<number> | undefined) {
    this.#into = into;
    this.#read = read;
    this.starts = starts;
  }

  line(raw: string): void {
    if (raw.length > MAX_RESULT_CHARACTERS || raw === "") return;
    if (this.starts !== undefined && !this.starts.has(raw.charCodeAt(firstInk(raw, 0)))) return;
    const result = this.#read(raw.trim(), raw);
    if (result === undefined) return;
    const [names, status] = result;
    if (typeof names === "string") this.#into.tests.add(names, status);
    else for (const name of new Set(names)) this.#into.tests.add(name, status);
  }
}
