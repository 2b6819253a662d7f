/**
 * Owns which tests a row of R2E-Gym expects. Sources of facts: R2E-Gym/R2E-Gym, repo_analysis/execution_log_parser.py
 * (names) and execution_result_analysis.py (the two logs).
 *
 * `expected_output_json` says how each test ends with the repair, by names without their file
 * (`TestIdx.test_bounds`); the logs of the runs without and with it have the names pytest prints. A test's result is
 * the expected one, its name that of the log.
 */

/** Tests by name as pytest prints them, from the short summary. */
export type Summary = ReadonlyMap<string, string>;

export interface ExpectedTests {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  /** Expected to pass, and in no log. */
  readonly unnamed: readonly string[];
}

const SUMMARY = "short test summary info";
const RESULT = /^(PASSED|FAILED|ERROR) (\S+::.*)$/;
/** What separates a name from the message of its failure. */
const MESSAGE = " - ";
// biome-ignore lint/suspicious/noControlCharactersInRegex: an escape sequence begins with one
const COLOUR = /\u001b\[[\d;]*m/g;

/** The results behind the first heading of a summary, as the data set reads them. */
export function readSummary(log: string): Summary {
  const found = new Map<string, string>();
  const text = log.replace(COLOUR, "").split(SUMMARY, 2)[1] ?? "";
  for (const line of text.split("\n")) {
    const result = RESULT.exec(line.trim());
    if (result !== null) found.set(result[2]!.split(MESSAGE, 1)[0]!, result[1]!);
  }
  return found;
}

/** Tests that pass with the repair, by whether they did without it; those expected to fail decide nothing. */
export function expectedTests(
  expected: Readonly<Record<string, unknown>>,
  without: Summary,
  repaired: Summary,
): ExpectedTests {
  const passing = new Set(
    Object.entries(expected).flatMap(([name, status]) =>
      status === "PASSED" ? [name.replace(COLOUR, "").split(MESSAGE, 1)[0]!] : [],
    ),
  );
  const names = [...repaired.keys()].filter((name) => passing.has(shortName(name)));
  const named = new Set(names.map(shortName));
  return {
    failToPass: names.filter((name) => without.get(name) !== "PASSED"),
    passToPass: names.filter((name) => without.get(name) === "PASSED"),
    unnamed: [...passing].filter((name) => !named.has(name)),
  };
}

/** `r2e_tests/test_1.py::TestIdx::test_bounds` is `TestIdx.test_bounds`. */
function shortName(name: string): string {
  return name.split("::").slice(1).join(".");
}
