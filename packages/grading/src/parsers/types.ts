/**
 * Owns the shape of a log parser. Does not list any (see registry.ts).
 */
import type { Observations } from "../results/observations.js";

/** What a parser may know of the record besides the log. */
export interface ParserContext {
  readonly instance: string;
  readonly expected: ReadonlySet<string>;
}

/** Reads one stretch of log, line by line, escape sequences removed. Never throws: what is no result is output. */
export interface LogParser {
  /** Codes of the first characters, blanks aside, of lines that can matter; all lines do when absent. */
  readonly starts?: ReadonlySet<number> | undefined;
  line(line: string): void;
  /** Called once, after the last line. */
  end?(): void;
}

export interface ParserDefinition {
  readonly name: string;
  /** Raised whenever the same log may give another map; a verdict names it, so that it can be graded again. */
  readonly version: number;
  /** What prints such logs, for the documentation. */
  readonly reads: string;
  /** The suite prints failures only: a test it does not name has passed, once the suite is proven to have run. */
  readonly printsFailuresOnly?: boolean;
  create(into: Observations, context: ParserContext): LogParser;
}
