/**
 * Owns reading the verbose report of SymPy's own test runner (`bin/test -C --verbose`).
 *
 *   test_a ok        test_b F        test_c E        test_d f        test_e s
 *   _____ sympy/core/tests/test_x.py:test_b _____
 *
 * Names are bare functions, so two files may use one: any failure wins. The last test of a file has the
 * file's mark behind it (`test_z ok   [OK]`). `f` (expected to fail), `X`, `s` and timeouts are no results.
 * The header of a traceback names its file too: another name than the records', kept beside it.
 */
import type { Observations } from "../../results/observations.js";
import type { LoggedStatus } from "../../results/status.js";
import type { LogParser, ParserContext, ParserDefinition } from "../types.js";
import { CountedPasses } from "./counted-passes.js";

const STATUSES = new Map<string, LoggedStatus>([
  ["ok", "passed"],
  ["F", "failed"],
  ["E", "error"],
]);
const FINISHED = /\btests finished: (.*)/;
const PASSED_COUNT = /\b(\d+) passed\b/;
const UNDERSCORE = "_".charCodeAt(0);

export const sympy: ParserDefinition = {
  name: "sympy",
  version: 1,
  reads: "SymPy's test runner, verbose",
  create: (into, context) => new SympyParser(into, context),
};

class SympyParser implements LogParser {
  readonly #found: CountedPasses;
  #hasStarted = false;

  constructor(into: Observations, context: ParserContext) {
    this.#found = new CountedPasses(into, context);
  }

  line(raw: string): void {
    const line = raw.trim();
    if (line.startsWith("test_")) this.#test(line);
    else if (line.charCodeAt(0) === UNDERSCORE) this.#traceback(line);
    else if (line.endsWith("====")) this.#rule(line);
  }

  end(): void {
    this.#found.end(this.#hasStarted);
  }

  #rule(line: string): void {
    if (line.includes("test process starts")) this.#hasStarted = true;
    const finished = FINISHED.exec(line);
    if (finished !== null) this.#found.count(Number(PASSED_COUNT.exec(finished[1]!)?.[1] ?? 0));
  }

  #test(line: string): void {
    const words = withoutFileMark(line);
    const space = words.lastIndexOf(" ");
    const status = space < 0 ? undefined : STATUSES.get(words.slice(space + 1));
    if (status === undefined) return;
    this.#found.add(words.slice(0, words.indexOf(" ")), status);
  }

  #traceback(line: string): void {
    const words = line.split(" ");
    const name = words.find((word) => word.includes(".py:"));
    if (name !== undefined && words.length >= 3) this.#found.add(name, "failed");
  }
}

function withoutFileMark(line: string): string {
  if (line.endsWith("[OK]")) return line.slice(0, -"[OK]".length).trimEnd();
  return line.endsWith("[FAIL]") ? line.slice(0, -"[FAIL]".length).trimEnd() : line;
}
