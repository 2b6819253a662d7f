/** Owns what runners other than pytest print for given tests. */
import type { Random } from "./random.js";
import type { SyntheticTest, Trait } from "./synthetic-case.js";

type Printer = (tests: readonly SyntheticTest[], traits: ReadonlySet<Trait>, random: Random) => string[];
const isShown = ({ outcome }: SyntheticTest) => outcome !== "absent";

const djangoStatus = {
  pass: "ok",
  fail: "FAIL",
  error: "ERROR",
  skip: "skipped 'no GIS'",
  xfail: "expected failure",
  xpass: "unexpected success",
  absent: "",
};

export const djangoOutput: Printer = (tests, traits) => {
  const lines = ["Creating test database for alias 'default'...", `Found ${tests.length} test(s).`];
  const shown = tests.filter(isShown);
  shown.forEach(({ name, outcome }, at) => {
    const isNoisy = at === shown.length - 1 && outcome === "pass";
    if (isNoisy && traits.has("late-status")) lines.push(`${name} ... some output`, "ok");
    else if (isNoisy && traits.has("sentence-ok")) lines.push(`${name} ... some output`, "ok, whatever");
    else if (isNoisy && traits.has("installed-noise"))
      lines.push(
        `${name} ... Testing against Django installed in '/testbed/django'`,
        "Importing application m",
        "System check identified no issues (0 silenced).",
        "ok",
      );
    else lines.push(`${name} ... ${djangoStatus[outcome]}`);
    if (traits.has("glued-test") && at === 0 && outcome === "pass") {
      lines.pop();
      lines.push(`${name} ... test_glued (m.T) ... ok`);
    }
    if (traits.has("docstring-collision") && at === 0) lines.push(`${name} ... FAIL`, `${name} ... ok`);
  });
  const bad = shown.filter(({ outcome }) => outcome === "fail" || outcome === "error");
  for (const { name, outcome } of bad)
    lines.push(
      "=".repeat(70),
      `${outcome === "fail" ? "FAIL" : "ERROR"}: ${name}`,
      "-".repeat(70),
      "Traceback (most recent call last):",
    );
  lines.push("-".repeat(70));
  if (!traits.has("unfinished")) lines.push(`Ran ${tests.length + 2} tests in 0.0${tests.length}s`);
  return [...lines, "", bad.length > 0 ? `FAILED (failures=${bad.length})` : "OK"];
};

const sympyMark = { pass: "ok", fail: "F", error: "E", skip: "s", xfail: "f", xpass: "X", absent: "" };

export const sympyOutput: Printer = (tests, traits) => {
  const shown = tests.filter(isShown);
  const lines = [
    "============================= test process starts ==============================",
    `sympy/core/tests/test_a.py[${shown.length}] `,
  ];
  shown.forEach(({ name, outcome }, at) => {
    const isLast = at === shown.length - 1;
    lines.push(
      `${name} ${sympyMark[outcome]}${isLast && traits.has("file-mark") ? "             [OK]" : ""}`,
    );
    if (traits.has("shared-name") && at === 0) lines.push(`${name} F`, `${name} ok`);
  });
  for (const { name, outcome } of shown)
    if (outcome === "fail")
      lines.push("_".repeat(80), `_____________ sympy/core/tests/test_a.py:${name} _____________`);
  const passed = shown.filter(({ outcome }) => outcome === "pass").length + 1;
  if (!traits.has("unfinished"))
    lines.push(`============= tests finished: ${passed} passed, in 1.00 seconds =============`);
  return lines;
};

function linewise(
  marks: Readonly<Record<string, string>>,
  line: (mark: string, name: string) => string,
): Printer {
  return (tests) =>
    tests.flatMap(({ name, outcome }) => (marks[outcome] === undefined ? [] : [line(marks[outcome], name)]));
}

export const gotestOutput = linewise(
  { pass: "PASS", fail: "FAIL", error: "FAIL", skip: "SKIP" },
  (mark, name) => `${name.includes("/") ? "    " : ""}--- ${mark}: ${name} (0.01s)`,
);
export const cargoOutput = linewise(
  { pass: "ok", fail: "FAILED", error: "FAILED", skip: "ignored" },
  (mark, name) => `test ${name} ... ${mark}`,
);
export const jestOutput = linewise(
  { pass: "✓", fail: "✕", error: "✕", skip: "○" },
  (mark, name) => `    ${mark} ${name} (5 ms)`,
);
export const vitestOutput = linewise(
  { pass: "✓", fail: "×", error: "×", skip: "↓" },
  (mark, name) => ` ${mark} src/a.spec.ts > ${name} 5ms`,
);
export const tapOutput = linewise(
  { pass: "ok", fail: "not ok", error: "not ok" },
  (mark, name) => `${mark} 1 ${name}`,
);
export const redisOutput = linewise(
  { pass: "ok", fail: "err", error: "err", skip: "skip" },
  (mark, name) =>
    `[${mark}]: ${name}${mark === "ok" ? " (3 ms)" : mark === "err" ? " in tests/unit/x.tcl" : ""}`,
);
export const gradleOutput = linewise(
  { pass: "PASSED", fail: "FAILED", error: "FAILED" },
  (mark, name) => `com.example.ATest > ${name} ${mark}`,
);
export const googleOutput = linewise(
  { pass: "      OK", fail: " FAILED ", error: " FAILED " },
  (mark, name) => `[${mark} ] ${name} (3 ms)`,
);
export const rspecOutput = linewise(
  { pass: "passed", fail: "failed", error: "failed" },
  (mark, name) => `${name} - ${mark}`,
);
export const rubyUnitOutput = linewise(
  { pass: ".", fail: "F", error: "E", skip: "O" },
  (mark, name) => `  test: ${name}:\t\t${mark}: (0.001)`,
);
export const mavenOutput: Printer = (tests) =>
  tests
    .filter(isShown)
    .flatMap(({ name, outcome }) => [
      `+ mvnd test -B -Dtest=${name} -pl core`,
      `[INFO] BUILD ${outcome === "pass" ? "SUCCESS" : "FAILURE"}`,
    ]);
export const phpunitOutput: Printer = (tests) => [
  "Carbon Test (Tests\\Carbon)",
  ...linewise({ pass: "✔", fail: "✘", error: "✘", skip: "↩" }, (mark, name) => ` ${mark} ${name}`)(
    tests,
    new Set(),
    undefined as never,
  ),
];
