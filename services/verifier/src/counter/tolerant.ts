/**
 * Owns telling from the words of a test whether something in it may equal several values: there another value proves
 * nothing, as `approx(4, abs=5) == 3` and `mock.ANY == 3` stay true of other numbers.
 */

const WORDS = [
  // Python: pytest's approx, unittest.mock, testtools, dirty-equals, hamcrest.
  /\bapprox\b|\bisclose\b|\bANY\b|\bAny\w*|\bany_\w+|\bIs[A-Z]\w*|\bContains\w*|\bMatch\w*|__eq__|__ne__/,
  // JavaScript: asymmetric matchers of Jest and Vitest, and Sinon's.
  /\bexpect\.\w+|\bsinon\.match\b/,
  // Everywhere.
  /\b\w*(?:toleran|approx|fuzzy|regex|almost|epsilon)\w*/i,
] as const;

/** `code` is a test with its head, or one of its statements. */
export function mayEqualSeveral(code: string): boolean {
  return WORDS.some((word) => word.test(code));
}
