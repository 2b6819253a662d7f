/**
 * Owns one synthetic case: a record, a log, and the traits that were put into it. A trait is a row of the list of
 * lines that are easy to misread; disagreements are explained by traits only (explanations.ts).
 */
export type Trait =
  | "plain"
  | "colour"
  | "crlf"
  | "verbose-only"
  | "xdist"
  | "teardown-error"
  | "collapsed"
  | "rerun"
  | "collection-error"
  | "usage-error"
  | "misleading-lines"
  | "named-skip"
  | "reasons"
  | "unexpected-pass"
  | "progress-mark"
  | "path-option"
  | "mouse-button"
  | "space-in-id"
  | "dash-in-id"
  | "cut-id"
  | "docstring"
  | "docstring-collision"
  | "late-status"
  | "sentence-ok"
  | "expectations"
  | "installed-noise"
  | "glued-test"
  | "shared-name"
  | "file-mark"
  | "sub-tests"
  | "forged-outside"
  | "forged-count"
  | "forged-reason"
  | "early-end"
  | "second-start"
  | "before-start"
  | "behind-end"
  | "no-end"
  | "no-marks"
  | "time-limit"
  | "harness-word"
  | "word-in-output"
  | "no-results"
  | "infrastructure"
  | "empty-list"
  | "exit-code"
  | "exit-code-forged"
  | "unfinished";

export interface SyntheticCase {
  readonly id: string;
  readonly repo: string;
  readonly version: string;
  /** The official package's name of the parser. */
  readonly logParser: string;
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly log: string;
  readonly traits: ReadonlySet<Trait>;
}

/** How a synthetic test ended. */
export type Outcome = "pass" | "fail" | "error" | "skip" | "xfail" | "xpass" | "absent";
export interface SyntheticTest {
  readonly name: string;
  readonly outcome: Outcome;
}
