/** Owns the synthetic cases: case n of a seed is always the same record and log. */
import * as others from "./output-others.js";
import { pytestOutput } from "./output-pytest.js";
import { Random } from "./random.js";
import type { Outcome, SyntheticCase, SyntheticTest, Trait } from "./synthetic-case.js";

interface Family {
  readonly repos: readonly (readonly [repo: string, version: string, logParser: string])[];
  readonly names: (random: Random, traits: ReadonlySet<Trait>, at: number) => string;
  /** As the records of the family spell a printed name. */
  readonly recorded: (name: string) => string;
  readonly print: (tests: readonly SyntheticTest[], traits: Set<Trait>, random: Random) => string[];
  readonly traits: readonly Trait[];
}

const START = "+ : '>>>>> Start Test Output'";
const END = "+ : '>>>>> End Test Output'";
const ANYWHERE = [
  "plain",
  "plain",
  "crlf",
  "early-end",
  "second-start",
  "before-start",
  "behind-end",
  "no-end",
  "no-marks",
  "time-limit",
  "harness-word",
  "no-results",
  "infrastructure",
  "empty-list",
  "exit-code",
  "exit-code-forged",
  "word-in-output",
] as const satisfies readonly Trait[];
const PYTEST = [
  "plain",
  "colour",
  "verbose-only",
  "xdist",
  "teardown-error",
  "collapsed",
  "rerun",
  "collection-error",
  "usage-error",
  "misleading-lines",
  "named-skip",
  "reasons",
  "unexpected-pass",
  "progress-mark",
  "space-in-id",
  "dash-in-id",
  "cut-id",
  "forged-outside",
  "forged-count",
  "forged-reason",
  "unfinished",
] as const satisfies readonly Trait[];

function pytestNames(random: Random, traits: ReadonlySet<Trait>, at: number): string {
  const name = `tests/t_${at % 3}.py::Test${random.int(3)}::test_${at}`;
  if (traits.has("collapsed") && at < 2) return `tests/t_0.py::test_shared[a ${at}]`;
  if (traits.has("space-in-id") && at % 2 === 0) return `${name}[a${at} b]`;
  if (traits.has("dash-in-id") && at % 2 === 1) return `${name}[a${at} - b]`;
  if (traits.has("path-option") && at % 2 === 0) return `${name}[/tmp/pytest-${random.int(9)}/x${at}.fits]`;
  if (traits.has("mouse-button") && at % 2 === 0) return `${name}[MouseButton.LEFT-${at}]`;
  return random.chance(0.4)
    ? `${name}[${random.pick(["True", "x0", "1-2", "http://h/p", "[1]"])}-${at}]`
    : name;
}
const firstWord = (name: string) => name.split(/\s/, 1)[0]!;
const pytestFamily = (
  logParser: string,
  repos: Family["repos"],
  extra: readonly Trait[] = [],
  recorded = firstWord,
): Family => ({
  repos: repos.map(([repo, version]) => [repo, version, logParser]),
  names: pytestNames,
  recorded,
  print: pytestOutput,
  traits: [...PYTEST, ...extra, ...extra],
});
const linewise = (
  print: Family["print"],
  name: (at: number) => string,
  repos: Family["repos"],
  traits: readonly Trait[] = ["plain"],
): Family => ({
  repos,
  names: (_, __, at) => name(at),
  recorded: (printed) => printed,
  print,
  traits,
});

const FAMILIES: readonly Family[] = [
  pytestFamily("parse_log_pytest", [
    ["pydata/xarray", "0.12", ""],
    ["pytest-dev/pytest", "7.2", ""],
    ["pallets/flask", "2.3", ""],
  ]),
  pytestFamily("parse_log_pytest_v2", [
    ["astropy/astropy", "5.1", ""],
    ["scikit-learn/scikit-learn", "0.20", ""],
    ["sphinx-doc/sphinx", "3.1", ""],
  ]),
  pytestFamily(
    "parse_log_pytest_options",
    [
      ["psf/requests", "2.26", ""],
      ["pylint-dev/pylint", "2.9", ""],
    ],
    ["path-option"],
    (name) => firstWord(name).replace(/\[\/tmp\/pytest-\d\//, "[/"),
  ),
  pytestFamily("parse_log_matplotlib", [["matplotlib/matplotlib", "3.5", ""]], ["mouse-button"], (name) =>
    firstWord(name).replace("MouseButton.LEFT", "1"),
  ),
  pytestFamily("parse_log_seaborn", [["mwaskom/seaborn", "0.12", ""]]),
  {
    repos: [["django/django", "3.2", "parse_log_django"]],
    names: (random, traits, at) =>
      traits.has("docstring") && at % 2 === 0
        ? `Checks thing ${at} of it.`
        : `test_${at} (app.tests.Test${random.int(3)})`,
    recorded: (name) => name,
    print: others.djangoOutput,
    traits: [
      "plain",
      "docstring",
      "docstring-collision",
      "late-status",
      "sentence-ok",
      "expectations",
      "installed-noise",
      "glued-test",
      "unfinished",
    ],
  },
  {
    repos: [["sympy/sympy", "1.4", "parse_log_sympy"]],
    names: (_, __, at) => `test_issue_${at}`,
    recorded: (name) => name,
    print: others.sympyOutput,
    traits: ["plain", "shared-name", "file-mark", "unfinished"],
  },
  linewise(
    others.gotestOutput,
    (at) => (at % 3 === 2 ? `TestA/case#0${at}` : `TestA${at}`),
    [["gin-gonic/gin", "3741", "parse_log_gotest"]],
    ["plain", "sub-tests"],
  ),
  linewise(others.cargoOutput, (at) => `mod_a::test_${at}`, [
    ["burntsushi/ripgrep", "2626", "parse_log_cargo"],
  ]),
  linewise(others.jestOutput, (at) => `does thing ${at}`, [["babel/babel", "13928", "parse_log_jest"]]),
  linewise(others.vitestOutput, (at) => `does thing ${at} well`, [
    ["vuejs/core", "11589", "parse_log_vitest"],
  ]),
  linewise(others.tapOutput, (at) => `does thing ${at}`, [["axios/axios", "5892", "parse_log_tap"]]),
  linewise(others.redisOutput, (at) => `EXPIRE case ${at}`, [["redis/redis", "13115", "parse_log_redis"]]),
  linewise(others.gradleOutput, (at) => `testThing${at}`, [
    ["reactivex/rxjava", "7597", "parse_log_gradle_custom"],
  ]),
  linewise(others.googleOutput, (at) => `format_test.case_${at}`, [
    ["fmtlib/fmt", "3750", "parse_log_googletest"],
  ]),
  linewise(others.rspecOutput, (at) => `Fastlane thing ${at} works`, [
    ["fastlane/fastlane", "21857", "parse_log_rspec_transformed_json"],
  ]),
  linewise(others.rubyUnitOutput, (at) => `test_thing_${at}`, [
    ["fluent/fluentd", "4598", "parse_log_ruby_unit"],
  ]),
  linewise(others.mavenOutput, (at) => `org.a.BTest#case${at}`, [["google/gson", "2061", "parse_log_maven"]]),
  linewise(others.phpunitOutput, (at) => `Adds ${at} days`, [
    ["briannesbitt/carbon", "3103", "parse_log_phpunit"],
  ]),
];

const OUTCOMES: readonly Outcome[] = ["pass", "fail", "error", "skip", "xfail", "absent"];

/** Case `ordinal` of a seed. Half of the cases are in the pytest family, as half of all records are. */
export function syntheticCase(seed: number, ordinal: number): SyntheticCase {
  const random = new Random(Math.imul(seed, 0x9e3779b1) ^ Math.imul(ordinal + 1, 0x85ebca6b));
  const family = random.chance(0.5) ? FAMILIES[random.int(5)]! : random.pick(FAMILIES);
  const traits = new Set<Trait>([
    random.pick(family.traits),
    random.chance(0.6) ? "plain" : random.pick(ANYWHERE),
  ]);
  const tests = testsOf(family, traits, random);
  if (family.print === others.djangoOutput && tests.some(({ outcome }) => outcome === "xfail"))
    traits.add("expectations");
  const [repo, version, logParser] = random.pick(family.repos);
  const names = [
    ...new Set(tests.map(({ name }) => nameInRecord(family.recorded(printedName(name, family)), traits))),
  ];
  const failCount = 1 + random.int(Math.min(3, names.length - 1));
  const isEmpty = traits.has("empty-list");
  const output = outputOf(family, tests, traits, random);
  const log = logOf(output, tests, traits, random);
  return {
    id: `${repo.replace("/", "__")}-${ordinal}`,
    repo,
    version,
    logParser,
    failToPass: isEmpty ? [] : names.slice(0, failCount),
    passToPass: [...names.slice(failCount), ...(traits.has("progress-mark") ? ["[100%]"] : [])],
    log: traits.has("crlf") ? log.replaceAll("\n", "\r\n") : log,
    traits,
  };
}

/** Records of some runners hold more than the runner's own line names. */
function printedName(name: string, family: Family): string {
  if (family.print === others.gradleOutput) return `com.example.ATest > ${name}`;
  if (family.print === others.phpunitOutput) return `Carbon Test > ${name}`;
  return family.print === others.vitestOutput ? `src/a.spec.ts > ${name}` : name;
}

function nameInRecord(name: string, traits: ReadonlySet<Trait>): string {
  const open = name.indexOf("[");
  return traits.has("cut-id") && open > 0 && name.length > open + 2 ? name.slice(0, -2) : name;
}

function testsOf(family: Family, traits: ReadonlySet<Trait>, random: Random): SyntheticTest[] {
  const passShare = random.pick([0.6, 1, 1]);
  const count = 3 + random.int(8);
  return Array.from({ length: count }, (_, at) => {
    const name = family.names(random, traits, at);
    if (traits.has("collapsed") && at < 2)
      return { name, outcome: at === 0 ? "pass" : random.pick(["pass", "fail"]) };
    if (traits.has("unexpected-pass") && at === 1) return { name, outcome: "xpass" };
    if (traits.has("expectations") && at < 2) return { name, outcome: at === 0 ? "xfail" : "xpass" };
    if (traits.has("named-skip") && at === count - 1) return { name, outcome: "skip" };
    if (traits.has("rerun") && at === 1) return { name, outcome: "fail" };
    return { name, outcome: random.chance(passShare) ? "pass" : random.pick(OUTCOMES) };
  });
}

function outputOf(
  family: Family,
  tests: readonly SyntheticTest[],
  traits: Set<Trait>,
  random: Random,
): string[] {
  if (traits.has("no-results") || traits.has("before-start") || traits.has("behind-end"))
    return ["Segmentation fault"];
  if (traits.has("infrastructure")) return ["OSError: [Errno 28] No space left on device"];
  if (traits.has("usage-error"))
    return ["ERROR: usage: pytest [options] [file_or_dir]", "no tests ran in 0.00s"];
  const lines = family.print(tests, traits, random);
  const [victim] = tests as [SyntheticTest];
  const at = lines.findIndex((line) => line.includes("short test summary info"));
  if (traits.has("forged-outside"))
    return [`PASSED ${victim.name}`, ...family.print(tests.slice(1), traits, random)];
  if (traits.has("forged-count") && at >= 0) {
    const real = family.print(tests.slice(1), traits, random);
    const summary = real.findIndex((line) => line.includes("short test summary info"));
    return [...real.slice(0, summary + 1), `PASSED ${victim.name}`, ...real.slice(summary + 1)];
  }
  if (traits.has("forged-reason") && at >= 0)
    return lines.map((line) => (line === `PASSED ${victim.name}` ? `${line} - assert 1 == 2` : line));
  if (traits.has("word-in-output") && family.print !== pytestOutput) return [">>>>> Tests Errored", ...lines];
  return lines;
}

function logOf(
  output: readonly string[],
  tests: readonly SyntheticTest[],
  traits: ReadonlySet<Trait>,
  random: Random,
): string {
  const passes = tests.map(({ name }) => `PASSED ${name}`);
  const before = [
    "+ cd /testbed",
    "+ git status",
    "On branch main",
    ...(traits.has("before-start") ? passes : []),
  ];
  if (traits.has("harness-word"))
    before.push(random.pick([">>>>> Patch Apply Failed", ">>>>> Reset Failed", ">>>>> Tests Errored"]));
  if (traits.has("no-marks")) return [...before, ...output, ""].join("\n");
  const inside = ["+ the test command", ...output];
  if (traits.has("early-end")) inside.push(END, ">>>>> Test Exit Code: 0", "more output");
  if (traits.has("second-start")) inside.push(START, ...output);
  if (traits.has("exit-code-forged")) inside.push(">>>>> Test Exit Code: 0");
  const isOpen = traits.has("no-end") || traits.has("time-limit");
  const tail = isOpen
    ? []
    : [
        END,
        ...exitCode(tests, traits),
        "+ git checkout abc t.py",
        ...(traits.has("behind-end") ? passes : []),
      ];
  if (traits.has("time-limit")) tail.push("", "Timeout error: 1800 seconds exceeded.");
  return [...before, START, ...inside, ...tail, ""].join("\n");
}

function exitCode(tests: readonly SyntheticTest[], traits: ReadonlySet<Trait>): string[] {
  if (traits.has("exit-code")) return [">>>>> Test Exit Code: 3"];
  const hasFailed = tests.some(({ outcome }) => outcome === "fail" || outcome === "error");
  return traits.has("exit-code-forged") ? [`>>>>> Test Exit Code: ${hasFailed ? 1 : 0}`] : [];
}
