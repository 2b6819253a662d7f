/**
 * Owns reading the verbose report of Django's test runner (unittest with `--verbosity 2`).
 *
 *   test_a (m.T) ... ok                   the name is all before " ... "
 *   test_a (m.T)\nDoc line. ... ok        the name is the doc line: that is how the records spell it
 *   test_a (m.T) ... noise\nok            the status stands alone on a later line
 *   FAIL: test_a (m.T) (value=1)          header of a traceback; sub-tests carry their parameters
 *
 * A sub-test that fails leaves its test without status, and the next line is glued to it:
 * `test_a (m.T) ... test_b (m.T) ... ok` names neither, as in the records.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserContext, ParserDefinition } from "../types.js";
import { CountedPasses } from "./counted-passes.js";

const DOTS = " ... ";
const ENDINGS: readonly (readonly [string, LoggedStatus])[] = [
  [" ... ok", "passed"],
  [" ... OK", "passed"],
  [" ...  OK", "passed"],
  [" ... FAIL", "failed"],
  [" ... ERROR", "error"],
  [" ... expected failure", "xfailed"],
  [" ... unexpected success", "failed"],
];
/** The runner's own lines that can come between a name and its status. */
const INSTALLED = `${DOTS}Testing against Django installed in`;
const HEADER = /^(FAIL|ERROR): (\S+ \([^)]*\)|\S+)/;
const RAN = /Ran (\d+) tests? in \d/;
const STARTED = /^(Found \d+ test\(s\)|Creating test database for|Testing against Django)/;
/** Its doc string is printed over several lines; the records know it by this one. */
const VERSION_DOC = "--version is equivalent to version";
/** A migration's line is glued before the one test that runs migrations by hand. */
const GLUED_MIGRATION = "Applying sites.0002_alter_domain_unique...test_no_migrations";

export const django: ParserDefinition = {
  name: "django",
  version: 1,
  reads: "Django's test runner, verbose",
  create: (into, context) => new DjangoParser(into, context),
};

class DjangoParser implements LogParser {
  readonly #found: CountedPasses;
  /** A name whose status has not been printed yet. */
  #pending: string | undefined;
  #pendingInstalled: string | undefined;
  #hasStarted = false;

  constructor(into: Observations, context: ParserContext) {
    this.#found = new CountedPasses(into, context);
  }

  line(raw: string): void {
    const line = raw.trim();
    if (line === "ok") this.#settlePending();
    else if (line.includes(DOTS)) this.#dotted(line);
    else if (line.startsWith("FAIL:") || line.startsWith("ERROR:")) this.#header(line);
    else if (line.includes("Ran ")) this.#ran(line);
    else if (!this.#hasStarted) this.#hasStarted = STARTED.test(line);
    if (line.includes(VERSION_DOC)) this.#found.add(VERSION_DOC, "passed");
  }

  end(): void {
    this.#found.end(this.#hasStarted);
  }

  #dotted(line: string): void {
    const ending = ENDINGS.find(([text]) => line.endsWith(text));
    const skipped = ending === undefined ? line.indexOf(" ... skipped") : -1;
    if (ending !== undefined) this.#found.add(ungluedName(line.slice(0, -ending[0].length)), ending[1]);
    else if (skipped >= 0) this.#found.add(line.slice(0, skipped), "skipped");
    this.#pending = ending === undefined && skipped < 0 ? line.slice(0, line.indexOf(DOTS)) : undefined;
    const installed = this.#pending === undefined ? -1 : line.indexOf(INSTALLED);
    if (installed >= 0) this.#pendingInstalled = line.slice(0, installed);
  }

  #settlePending(): void {
    for (const name of [this.#pending, this.#pendingInstalled])
      if (name !== undefined) this.#found.add(name, "passed");
    this.#pending = undefined;
    this.#pendingInstalled = undefined;
  }

  #header(line: string): void {
    const header = HEADER.exec(line);
    if (header !== null) this.#found.add(header[2]!, header[1] === "FAIL" ? "failed" : "error");
  }

  #ran(line: string): void {
    const ran = RAN.exec(line);
    if (ran !== null) this.#found.count(Number(ran[1]));
  }
}

function ungluedName(name: string): string {
  return name.startsWith(GLUED_MIGRATION) ? name.slice(name.indexOf("...") + 3).trim() : name;
}
