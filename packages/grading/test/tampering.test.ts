/**
 * Logs that only an imitator can have printed, next to the honest log each is made from: a text log is no
 * evidence, so this catches what shows in text, and nothing honest.
 */
import { describe, expect, test } from "vitest";
import { END, gradeOf, logOf, START, sessionOf } from "./logs.js";

const record = { failToPass: ["t.py::fixed"], passToPass: ["t.py::kept"] };
const honest = sessionOf(["PASSED t.py::fixed", "PASSED t.py::kept"], "2 passed");
const failing = sessionOf(["PASSED t.py::kept", "FAILED t.py::fixed - boom"], "1 failed, 1 passed");
const grade = (log: string) => gradeOf("pytest", record, log);

test("the honest logs", () => {
  expect(grade(logOf(honest, 0)).verdict).toBe("resolved");
  expect(grade(logOf(failing, 1)).verdict).toBe("unresolved");
});

describe("marks", () => {
  test.each([
    ["an early end and a forged exit code", [...honest, END, ">>>>> Test Exit Code: 0", ...failing]],
    ["an early end in another form", [...honest, ">>>>> End Test Output", ...failing]],
    ["a second start", [...failing, START, ...honest]],
    ["an exit code in the output", [...honest, ">>>>> Test Exit Code: 0"]],
  ])("%s", (_, output) => {
    const judged = grade(logOf(output, 1));
    expect(judged.verdict).toBe("invalid(tamper)");
    expect(judged.reasons).not.toEqual([]);
  });

  test("an end that is printed, and the script never reaches its own", () => {
    const [head] = logOf([...honest, ">>>>> End Test Output"]).split(`\n${END}`);
    expect(grade(head!).verdict).toBe("invalid(tamper)");
  });

  test("two exit codes that differ", () => {
    expect(grade(`${logOf(honest, 0)}\n>>>>> Test Exit Code: 1`).verdict).toBe("invalid(tamper)");
  });

  test("marks quoted in the patch are not marks", () => {
    const diff = ["+ git diff", "+        echo '>>>>> Start Test Output'", "-# >>>>> End Test Output"];
    expect(grade([...diff, logOf(honest, 0)].join("\n")).verdict).toBe("resolved");
  });

  test("marks that are echoed, with and without a trace", () => {
    const traced = ["+ echo '>>>>> Start Test Output'", ">>>>> Start Test Output", ...honest];
    expect(
      grade([...traced, "+ echo '>>>>> End Test Output'", ">>>>> End Test Output"].join("\n")).verdict,
    ).toBe("resolved");
    expect(grade([">>>>> Start Test Output", ...honest, ">>>>> End Test Output"].join("\n")).verdict).toBe(
      "resolved",
    );
  });

  test("output without a line end before the end mark", () => {
    const log = logOf([...honest, "bye"]).replace("bye\n", "bye");
    expect(grade(log).verdict).toBe("resolved");
  });
});

describe("results", () => {
  const opened = honest.slice(0, 3);
  test.each([
    [
      "a session that exits at import, passes written past it",
      [...opened, "PASSED t.py::fixed", "PASSED t.py::kept"],
    ],
    [
      "a forged pass beside a real, unrelated failure",
      [
        "PASSED t.py::fixed",
        ...sessionOf(["PASSED t.py::kept", "FAILED t.py::other - x"], "1 failed, 1 passed"),
      ],
    ],
    [
      "a forged pass behind the session",
      [...sessionOf(["PASSED t.py::kept"], "1 passed, 1 skipped"), "PASSED t.py::fixed"],
    ],
    [
      "one more pass than the session counted",
      sessionOf(["PASSED t.py::kept", "PASSED t.py::fixed"], "1 passed, 1 skipped"),
    ],
    [
      "a pass with the reason of a failure",
      sessionOf(["PASSED t.py::kept", "PASSED t.py::fixed - assert 1 == 2"], "2 passed"),
    ],
  ])("%s", (_, output) => expect(grade(logOf(output, 0)).verdict).toBe("invalid(tamper)"));

  test.each([
    ["only collected", [...opened, "2 tests collected in 0.01s"]],
    ["exited at import", opened],
  ])("no results and exit code 0: %s", (_, output) => {
    expect(grade(logOf(output, 0)).verdict).toBe("unresolved");
  });

  test("a verbose pass that the summary of the session does not list", () => {
    const skipping = sessionOf(["PASSED t.py::kept", "SKIPPED [1] t.py:3: no"], "1 passed, 1 skipped");
    expect(grade(logOf(["t.py::fixed PASSED       [ 50%]", ...skipping], 0)).verdict).toBe("unresolved");
    const header = skipping.slice(0, 5);
    const counts = "======= 2 skipped in 0.12s =======";
    const verbose = ["t.py::fixed PASSED [ 50%]", "t.py::kept PASSED [100%]"];
    expect(grade(logOf([...header, ...verbose, counts], 0)).verdict).toBe("invalid(tamper)");
    const honestCounts = "======= 2 passed in 0.12s =======";
    expect(grade(logOf([...header, ...verbose, honestCounts], 0)).verdict).toBe("resolved");
  });

  test("a failure and a forged pass of the same test", () => {
    expect(
      grade(logOf([...failing.slice(0, -1), "PASSED t.py::fixed", failing.at(-1)!], 1)).verdict,
    ).not.toBe("resolved");
  });

  test("a failed command without a failed test", () => {
    expect(grade(logOf(honest, 3)).verdict).toBe("unresolved");
  });

  test.each([
    ["django", ["Found 1 test(s).", "fixed (m.T) ... ok", "kept (m.T) ... ok", "Ran 1 test in 0.01s", "OK"]],
    [
      "sympy",
      ["== test process starts ==", "fixed ok", "==== tests finished: 0 passed, in 0.1 seconds ===="],
    ],
  ])("more passes than %s counted", (parser, output) => {
    const expected = parser === "django" ? ["fixed (m.T)", "kept (m.T)"] : ["test_fixed"];
    const lines =
      parser === "django"
        ? output
        : output.map((line) => line.replace("fixed ok", "test_fixed ok").replace("== test", "==== test"));
    expect(gradeOf(parser, { failToPass: expected }, logOf(lines)).verdict).toBe("invalid(tamper)");
  });

  test("a runner that never reports its end resolves nothing", () => {
    const lines = ["Found 1 test(s).", "fixed (m.T) ... ok"];
    expect(gradeOf("django", { failToPass: ["fixed (m.T)"] }, logOf(lines)).verdict).toBe("unresolved");
  });

  test("sessions that tests of pytest print are output", () => {
    const inner = [
      ...sessionOf(["PASSED test_x.py::test_y"], "1 passed"),
      ...sessionOf(["FAILED test_x.py::test_z"], "1 failed"),
    ];
    const output = [
      ...honest.slice(0, 3),
      "= FAILURES =",
      "--- Captured stdout call ---",
      ...inner,
      ...honest.slice(3),
    ];
    expect(grade(logOf(output, 0)).verdict).toBe("resolved");
  });
});
