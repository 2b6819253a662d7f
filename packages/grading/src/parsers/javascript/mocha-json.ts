/**
 * Owns reading Mocha's JSON report, printed over many lines between other output: `fullTitle` of the lists
 * `passes`, `failures` and `pending`. Titles are known as written in the file and decoded: records have both.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserDefinition } from "../types.js";

const LIST = /^"(passes|failures|pending|tests)":\s*\[/;
const TITLE = /^"fullTitle":\s*"(.*)",?$/;
const STATUSES: Readonly<Record<string, LoggedStatus>> = {
  passes: "passed",
  failures: "failed",
  pending: "skipped",
};

export const mochaJson: ParserDefinition = {
  name: "mocha-json",
  version: 1,
  reads: "Mocha's JSON reporter",
  create: (into) => new MochaJson(into),
};

class MochaJson implements LogParser {
  readonly #into: Observations;
  #status: LoggedStatus | undefined;

  constructor(into: Observations) {
    this.#into = into;
  }

  line(raw: string): void {
    const line = raw.trim();
    if (!line.startsWith('"')) return;
    const list = LIST.exec(line);
    if (list !== null) this.#status = STATUSES[list[1]!];
    const title = this.#status === undefined ? null : TITLE.exec(line);
    if (title !== null) for (const name of spellings(title[1]!)) this.#into.tests.add(name, this.#status!);
  }
}

function spellings(text: string): ReadonlySet<string> {
  if (!text.includes("\\")) return new Set([text]);
  try {
    return new Set([text, JSON.parse(`"${text}"`) as string]);
  } catch {
    return new Set([text]);
  }
}
