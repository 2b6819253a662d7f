/** Whatever a log holds, grading ends with a verdict; output between results does not change one; size costs linearly. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Grade, gradeLog, LogGrader, PARSERS } from "../src/index.js";
import { END, logOf, recordFor, START, sessionOf } from "./logs.js";
import { RUNNER_LOGS } from "./runner-logs.js";

const parsers = [...PARSERS.keys()];
const record = { failToPass: ["t.py::a[x y]", "test_a (m.T)", "test_b"], passToPass: ["t.py::c"] };
const fragments = fc.constantFrom(
  START,
  END,
  ">>>>> Test Exit Code: 0",
  ">>>>> Patch Apply Failed",
  "PASSED t.py::a[x y]",
  "FAILED t.py::c - x",
  " ... ",
  "ok",
  "test_a (m.T) ... ok",
  "Ran 3 tests in 1s",
  "test_b ok",
  "[gw0] [ 1%] PASSED t.py::c",
  "✓ x (1 ms)",
  "1) x",
  "Error:",
  "<testcase name='",
  ">",
  "\u001b[32m",
  "\u001b]0;",
  "\r",
  "\r\n",
  "\n",
  "=".repeat(9),
  " short test summary info =",
  "case x: mismatch",
  "[",
  "]",
  " - ",
  "::",
  ": .",
);
const logs = fc
  .array(fc.oneof(fragments, fc.string(), fc.string({ unit: "binary" })))
  .map((parts) => parts.join(""));

describe("any log", () => {
  test("ends with a verdict and complete lists, under every parser", () => {
    fc.assert(
      fc.property(fc.constantFrom(...parsers), logs, (parser, log) => {
        const grade = gradeLog(recordFor(parser, record), log);
        expect([...grade.failToPass.passed, ...grade.failToPass.failed].sort()).toEqual(
          [...record.failToPass].sort(),
        );
        expect(grade.passToPass.passed.length + grade.passToPass.failed.length).toBe(1);
        if (grade.verdict === "resolved") expect(grade.failToPass.failed).toEqual([]);
        else expect(grade.reasons).not.toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("is graded the same whole and in pieces", () => {
    fc.assert(
      fc.property(fc.constantFrom(...parsers), logs, fc.array(fc.nat({ max: 40 })), (parser, log, cuts) => {
        const grader = new LogGrader(recordFor(parser, record));
        let at = 0;
        for (const cut of cuts) {
          grader.write(log.slice(at, at + cut));
          at += cut;
        }
        grader.write(log.slice(at));
        expect(grader.end()).toEqual(gradeLog(recordFor(parser, record), log));
        const ofBytes = new LogGrader(recordFor(parser, record));
        const bytes = new TextEncoder().encode(log);
        for (let from = 0; from < bytes.length; from += 7) ofBytes.writeBytes(bytes.subarray(from, from + 7));
        expect(ofBytes.end()).toEqual(gradeLog(recordFor(parser, record), log));
      }),
      { numRuns: 500 },
    );
  });
});

describe("noise", () => {
  const noise = fc.array(
    fc.oneof(
      fc.constantFrom(
        "",
        "warning: slow",
        "E   assert 1 == 2",
        "Traceback (most recent call last):",
        '  File "x.py", line 3',
        "INFO done",
      ),
      fc.stringMatching(/^[a-z ,.]{0,40}$/),
    ),
    { minLength: 1, maxLength: 5 },
  );
  const withNoise = (lines: readonly string[], parts: readonly (readonly string[])[]) =>
    lines.flatMap((line, at) => [line, ...(parts[at % parts.length] ?? [])]);
  const same = (a: Grade, b: Grade) => {
    expect(a).toEqual(b);
  };

  test("between the lines of a pytest session changes nothing", () => {
    const fields = { failToPass: ["t.py::a"], passToPass: ["t.py::b"] };
    const lines = sessionOf(["PASSED t.py::a", "FAILED t.py::b - x"], "1 failed, 1 passed");
    const plain = gradeLog(recordFor("pytest", fields), logOf(lines));
    fc.assert(
      fc.property(fc.array(noise, { minLength: 1 }), (parts) =>
        same(gradeLog(recordFor("pytest", fields), logOf(withNoise(lines, parts))), plain),
      ),
    );
  });

  test("between the lines of Django's runner changes nothing", () => {
    const fields = { failToPass: ["test_a (m.T)"], passToPass: ["test_b (m.T)"] };
    const lines = [
      "test_a (m.T) ... ok",
      "test_b (m.T) ... ERROR",
      "Ran 2 tests in 0.1s",
      "FAILED (errors=1)",
    ];
    const plain = gradeLog(recordFor("django", fields), logOf(lines));
    // A bare "ok" is a status, not noise: only here can the random text be one.
    const quiet = noise.filter((part) => !part.some((line) => line.trim() === "ok"));
    fc.assert(
      fc.property(fc.array(quiet, { minLength: 1 }), (parts) =>
        same(gradeLog(recordFor("django", fields), logOf(withNoise(lines, parts))), plain),
      ),
    );
  });
});

describe("size", () => {
  /** Lines of one kind, where a pattern that backtracks or a scan that restarts would take hours. */
  const hostile = [
    "(".repeat(200_000),
    " (1".repeat(60_000),
    ": ".repeat(100_000),
    ". = ".repeat(50_000),
    "[ OK ] ".repeat(30_000),
    "\u001b[".repeat(100_000),
    "<a b='".repeat(30_000),
    " - ".repeat(60_000),
    "::".repeat(100_000),
    " ... ".repeat(40_000),
    "a [PASSED".repeat(20_000),
    "PASSED ".repeat(30_000),
  ];
  test.each(parsers)("%s takes hostile lines in one pass", (parser) => {
    const grader = new LogGrader(recordFor(parser, record));
    grader.write(`${START}\n`);
    for (const line of hostile) grader.write(`${line}\n`);
    grader.write(hostile.join(""));
    grader.write(`\n${END}\n`);
    expect(grader.end().verdict).toBe("unresolved");
  });

  test("a result behind megabytes without a line end is found", () => {
    const grader = new LogGrader(recordFor("pytest", { failToPass: ["t.py::a"] }));
    grader.write(`${START}\n`);
    for (let at = 0; at < 64; at += 1) grader.write("x".repeat(100_000));
    grader.write(`\nPASSED t.py::a\n${END}\n`);
    expect(grader.end().verdict).toBe("resolved");
  });
});

test("the logs of all runners are read without a verdict of tampering", () => {
  for (const { parser, log, map } of RUNNER_LOGS) {
    const failToPass = Object.keys(map);
    expect(gradeLog(recordFor(parser, { failToPass }), logOf(log.split("\n"))).verdict).not.toBe(
      "invalid(tamper)",
    );
  }
});
