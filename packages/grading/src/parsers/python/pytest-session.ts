/**
 * Owns what pytest says about its own session (its start, the short summary, the final counts) and what
 * follows when results do not fit it. Does not read results.
 *
 * A session's short summary comes between two rules and its counts come last. A result line that stands
 * outside every summary, of a test the record expects, was printed by something else; so was one more passed
 * test than the session counted. Tests of pytest itself print whole sessions of their own: counts are
 * compared only where one session is visible.
 */
import type { Observations } from "../../results/observations.js";
import type { PytestResult } from "./pytest-lines.js";

const RULE = "=".charCodeAt(0);
const COUNTS = / in \d[\d.:]* ?s|\bno tests ran\b/;
const PASSED_COUNT = /\b(\d+) passed\b/;
/** How a failure's reason starts; ids of documentation tests may hold a dash themselves. */
const FAILURE = /^(?:assert\b|\w*(?:Error|Exception|Failed)\b)/;
const RERUN_COUNT = /\b\d+ rerun\b/;
/** Rules are as wide as a terminal; longer lines are not looked at. */
const MAX_RULE_CHARACTERS = 1_000;

export class PytestSession {
  readonly #into: Observations;
  readonly #expected: ReadonlySet<string>;
  readonly #inSummary = new Set<string>();
  readonly #outside = new Set<string>();
  readonly #verbose = new Set<string>();
  #sessions = 0;
  #ends = 0;
  #passedLines = 0;
  #passedCount = 0;
  #isInSummary = false;
  #summaries = 0;

  constructor(into: Observations, expected: ReadonlySet<string>) {
    this.#into = into;
    this.#expected = expected;
  }

  /** Looks at a line that starts with a rule, or has one after other output. */
  rule(line: string): void {
    if (line.length > MAX_RULE_CHARACTERS || line.charCodeAt(line.length - 1) !== RULE) return;
    this.#isInSummary = line.includes(" short test summary info =");
    if (this.#isInSummary) this.#summaries += 1;
    else if (line.includes(" test session starts =")) this.#sessions += 1;
    else if (COUNTS.test(line)) {
      this.#ends += 1;
      this.#passedCount += Number(PASSED_COUNT.exec(line)?.[1] ?? 0);
      if (RERUN_COUNT.test(line)) this.#into.tests.acceptReruns();
    }
  }

  /** Takes note of a line of the short summary form, wherever it stands. */
  summaryLine({ name, status, reason, isNodeId }: PytestResult): void {
    if (status !== "passed" || isNodeId !== true) return;
    if (this.#isInSummary) this.#passedLines += 1;
    const space = name.indexOf(" ");
    const word = space < 0 ? name : name.slice(0, space);
    const wanted = this.#expected.has(name) ? name : this.#expected.has(word) ? word : undefined;
    if (wanted === undefined) return;
    (this.#isInSummary ? this.#inSummary : this.#outside).add(wanted);
    if (reason !== undefined && FAILURE.test(reason))
      this.#into.find(
        "tamper",
        `${wanted} is reported passed with the reason of a failure: ${reason.slice(0, 100)}`,
      );
  }

  /**
   * Whether a pass that only a verbose line tells may count: not where the summary of the one session lists its
   * passes, since it would be among them.
   */
  mayPassVerbosely(name: string): boolean {
    if (this.#sessions === 1 && this.#passedLines > 0) return false;
    if (this.#expected.has(name)) this.#verbose.add(name);
    return true;
  }

  end(): void {
    if (this.#sessions === 0 && this.#summaries === 0) return;
    if (this.#sessions > 0) this.#into.isComplete = this.#ends > 0;
    const [outside] = [...this.#outside].filter((name) => !this.#inSummary.has(name));
    if (outside !== undefined)
      this.#into.find("tamper", `${outside} is reported passed outside the summary of any session`);
    if (this.#sessions !== 1 || this.#ends !== 1) return;
    const reported = Math.max(this.#verbose.size, this.#summaries === 1 ? this.#passedLines : 0);
    if (reported > this.#passedCount)
      this.#into.find(
        "tamper",
        `${reported} tests are reported passed, the session counted ${this.#passedCount}`,
      );
  }
}
