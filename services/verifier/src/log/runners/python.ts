/** Owns the runners of Python: pytest by a plugin, unittest's and Django's from where Python starts. */
import type { LoggedStatus } from "@mortise/grading";
import type { ChannelReport } from "../channel.js";
import type { Runner } from "../runner.js";
import { countOf, mounted } from "./files.js";

const DIRECTORY = "/opt/mortise-python";
const PYTHON_PATH = `export PYTHONPATH="${DIRECTORY}\${PYTHONPATH:+:$PYTHONPATH}"`;
const VARIABLE = "PYTHONPATH";
const PROGRAM = String.raw`(?:^|[\s/;&|(])`;

export const pytest: Runner = {
  name: "pytest",
  parsers: new Set(["pytest", "pytest-options", "pytest-v2", "matplotlib", "seaborn"]),
  callsIn: countOf(new RegExp(String.raw`${PROGRAM}(?:pytest|py\.test)(?=\s|$)`, "g")),
  hasCanaries: true,
  variable: VARIABLE,
  mount: mounted(DIRECTORY, "python", ["mortise_pipe.py", "mortise_channel.py"]),
  exports: [PYTHON_PATH, `export PYTEST_ADDOPTS="-p mortise_channel\${PYTEST_ADDOPTS:+ $PYTEST_ADDOPTS}"`],
  asLog: ({ results, finish }) => {
    const isAgain = results.some(({ outcome }) => outcome === "rerun");
    const passes = results.filter(({ outcome }) => outcome === "passed").length;
    return [
      "===== test session starts =====",
      ...(isAgain ? ["plugins: rerunfailures"] : []),
      "===== short test summary info =====",
      ...worded(results, PYTEST_WORDS, (word, nodeid) => `${word} ${nodeid}`),
      ...(finish === undefined ? [] : [`===== ${passes} passed in 0.00s =====`]),
    ];
  },
};

export const unittest: Runner = {
  name: "unittest",
  parsers: new Set(["django"]),
  callsIn: countOf(
    new RegExp(
      String.raw`${PROGRAM}(?:runtests\.py|manage\.py\s+test|python[\d.]*\s+(?:-\w+\s+)*-m\s+unittest)(?=\s|$)`,
      "g",
    ),
  ),
  hasCanaries: true,
  variable: VARIABLE,
  mount: mounted(DIRECTORY, "python", ["mortise_pipe.py", "mortise_unittest.py", "sitecustomize.py"]),
  exports: [PYTHON_PATH],
  asLog: ({ results, finish }) => [
    "Found 0 test(s).",
    ...worded(results, UNITTEST_WORDS, (word, nodeid) => `${nodeid} ... ${word}`),
    ...(finish === undefined ? [] : [`Ran ${results.length} tests in 0.000s`]),
  ],
};

type Words = Readonly<Partial<Record<LoggedStatus | "xpassed", string>>>;

const PYTEST_WORDS: Words = {
  passed: "PASSED",
  failed: "FAILED",
  error: "ERROR",
  skipped: "SKIPPED",
  xfailed: "XFAIL",
};
const UNITTEST_WORDS: Words = {
  passed: "ok",
  failed: "FAIL",
  error: "ERROR",
  skipped: "skipped 'x'",
  xfailed: "expected failure",
  xpassed: "unexpected success",
};
function worded(
  results: ChannelReport["results"],
  words: Words,
  line: (word: string, nodeid: string) => string,
): string[] {
  return results.flatMap(({ nodeid, outcome }) => {
    const word = words[outcome as keyof Words];
    return word === undefined ? [] : [line(word, nodeid)];
  });
}
