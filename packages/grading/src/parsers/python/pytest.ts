/**
 * Owns the pytest family of parsers: one reader of lines, and per data set how it spells names.
 *
 *   pytest          names as printed
 *   pytest-options  a parameter that is a path is kept as its last part: `a[/tmp/p-0/x.fits]` is `a[/x.fits]`
 *   pytest-v2       also knows names without what looks like a colour code, as old records spell them
 *   matplotlib      `MouseButton.LEFT` and `RIGHT` are 1 and 3
 *   seaborn         skips and expected failures are not results
 *
 * The short summary wins over verbose lines: it is printed once, at the end.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { ParserContext, ParserDefinition } from "../types.js";
import { mayStartWithStatus, readSummaryLine, readVerboseLine } from "./pytest-lines.js";
import { PytestSession } from "./pytest-session.js";

interface Variant {
  /** Other spellings of a name; the first is the one the map shows. */
  readonly spell?: (name: string) => readonly string[];
  readonly ignores?: ReadonlySet<LoggedStatus>;
}

const RULE = "=".charCodeAt(0);
const NO_STATUSES: ReadonlySet<LoggedStatus> = new Set();

export const pytest = define("pytest", "pytest, names as printed", {});
export const pytestOptions = define("pytest-options", "pytest, paths in parameters shortened", {
  spell: (name) => {
    const end = name.search(/\s/);
    // Records that were cut at white space lost the bracket by which a path is known.
    return end < 0
      ? [shortenPathOption(name)]
      : [shortenPathOption(name), shortenPathOption(name.slice(0, end))];
  },
});
export const pytestV2 = define("pytest-v2", "pytest, coloured output", {
  spell: (name) => (name.includes("[") ? [name, name.replace(/\[\d+m/g, "")] : [name]),
});
export const matplotlib = define("matplotlib", "pytest as matplotlib's records spell it", {
  spell: (name) =>
    name.includes("MouseButton.")
      ? [name.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3")]
      : [name],
});
export const seaborn = define("seaborn", "pytest as seaborn's records read it", {
  ignores: new Set(["skipped", "xfailed", "error"]),
});

function define(name: string, reads: string, variant: Variant): ParserDefinition {
  return { name, version: 1, reads, create: (into, context) => new PytestParser(into, context, variant) };
}

class PytestParser {
  readonly #into: Observations;
  readonly #expected: ReadonlySet<string>;
  readonly #session: PytestSession;
  readonly #spell: Variant["spell"];
  readonly #ignores: ReadonlySet<LoggedStatus>;
  readonly #verbose: { readonly name: string; readonly status: LoggedStatus }[] = [];

  constructor(into: Observations, context: ParserContext, variant: Variant) {
    this.#into = into;
    this.#expected = context.expected;
    this.#session = new PytestSession(into, context.expected);
    this.#spell = variant.spell;
    this.#ignores = variant.ignores ?? NO_STATUSES;
  }

  line(line: string): void {
    const first = line.charCodeAt(0);
    if (first === RULE) this.#session.rule(line);
    else if (mayStartWithStatus(first)) this.#statusLine(line);
    else if (line.charCodeAt(line.length - 1) === RULE && line.includes("==== ")) this.#session.rule(line);
    else this.#verboseLine(line);
  }

  end(): void {
    if (this.#verbose.length > 0) this.#addVerbose();
    this.#session.end();
  }

  #addVerbose(): void {
    const summarised = new Set([...this.#into.tests.entries()].map(([name]) => name));
    for (const { name, status } of this.#verbose) {
      if (summarised.has(this.#spelled(name)[0]!)) continue;
      if (status !== "passed" || this.#session.mayPassVerbosely(name)) this.#add(name, status);
    }
  }

  #statusLine(line: string): void {
    const result = readSummaryLine(line, this.#expected);
    if (result === undefined) {
      this.#usageError(line);
      this.#verboseLine(line);
      return;
    }
    this.#session.summaryLine(result);
    // A progress mark is no test: what the records know of it is the last one.
    if (result.name.startsWith("[")) this.#into.tests.replace(result.name, result.status);
    else this.#add(result.name, result.status);
  }

  #verboseLine(line: string): void {
    const result = readVerboseLine(line);
    if (result === undefined) {
      if (line.startsWith("plugins:") && line.includes("rerunfailures")) this.#into.tests.acceptReruns();
    } else if (result === "rerun") this.#into.tests.acceptReruns();
    else this.#verbose.push(result);
  }

  /** pytest's own refusal of its command line or of a file it was to test. */
  #usageError(line: string): void {
    if (!line.startsWith("ERROR: ")) return;
    if (line.startsWith("ERROR: usage:") || line.startsWith("ERROR: unrecognized arguments"))
      this.#into.find("infra", "pytest refused the test command");
    else if (line.startsWith("ERROR: file or directory not found") || line.startsWith("ERROR: not found: "))
      this.#into.find("infra", "a test file is absent: the test patch was not applied");
  }

  #add(name: string, status: LoggedStatus): void {
    if (this.#ignores.has(status)) return;
    for (const spelling of this.#spelled(name)) this.#into.tests.add(spelling, status);
  }

  #spelled(name: string): readonly string[] {
    return this.#spell?.(name) ?? [name];
  }
}

/** `a[/tmp/x.fits]` → `a[/x.fits]`; URLs (`//`), patterns (`*`) and ids cut before their bracket stay. */
function shortenPathOption(name: string): string {
  const open = name.indexOf("[");
  const close = name.lastIndexOf("]");
  if (open < 0 || close < open) return name;
  const option = name.slice(open + 1, close);
  if (!option.startsWith("/") || option.startsWith("//") || option.includes("*")) return name;
  return `${name.slice(0, open)}[/${option.slice(option.lastIndexOf("/") + 1)}]`;
}
