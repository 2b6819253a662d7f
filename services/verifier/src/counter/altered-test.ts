/**
 * Owns the words of altered tests: a hidden test whose one assertion was made wrong, so that whatever passes the true
 * test fails this one. Does not find or alter any.
 */

/**
 * `value`: a literal the result is compared with is another one. Whoever passes both equals two different values.
 * `sense`: the assertion says the contrary.
 */
export type AlterationKind = "value" | "sense";

/** Replaces columns `from` to `to` of one line of a diff, without its mark. */
export interface Alteration {
  readonly kind: AlterationKind;
  /** Index of the line in the diff. */
  readonly line: number;
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** A test that stands in a diff whole, from its head to the assertions that can be altered. */
export interface FoundTest {
  readonly path: string;
  /** Names of what the test stands in, from the outside: classes, suites. */
  readonly scope: readonly string[];
  readonly name: string;
  /** Each alone makes the test fail wherever the true one passes. */
  readonly alterations: readonly Alteration[];
}

/** A whole number at least 0 and below `below`. */
export type Random = (below: number) => number;
