/**
 * Lines and records that graders have got wrong, each with the result it must have. The number is a row of
 * docs/grading.md, "Lines that are easy to misread".
 */
import { describe, expect, test } from "vitest";
import { gradeOf, logOf, mapOf, sessionOf } from "./logs.js";

type Map = Record<string, string>;

describe("pytest lines", () => {
  test.each<[number, string, string, string[], Map]>([
    [1, "a name with a space, plain", "pytest", ["PASSED t.py::a[x y]"], { "t.py::a[x y]": "passed" }],
    [2, "a name with a space, v2", "pytest-v2", ["PASSED t.py::a[x y]"], { "t.py::a[x y]": "passed" }],
    [4, "a status alone", "pytest", ["PASSED"], {}],
    [5, "a reason without a name", "pytest", ["FAILED - boom"], {}],
    [6, "a count of skips", "pytest", ["SKIPPED [3] t.py:12: needs net"], {}],
    [7, "a progress mark", "pytest", ["PASSED            [100%]"], {}],
    [8, "an id with a dash", "pytest", ["FAILED t.py::a[x - y] - boom"], { "t.py::a[x - y]": "failed" }],
    [9, "a skip with its name", "pytest", ["SKIPPED t.py::a - needs net"], { "t.py::a": "skipped" }],
    [10, "an expected failure", "pytest", ["XFAIL t.py::x - reason"], { "t.py::x": "xfailed" }],
    [11, "a reason under v2", "pytest-v2", ["XFAIL a/t.py::a - r"], { "a/t.py::a": "xfailed" }],
    [12, "an unexpected pass", "pytest", ["XPASS t.py::a"], {}],
    [14, "a file that cannot be collected", "pytest", ["ERROR t.py - ImportError"], { "t.py": "error" }],
    [15, "a refused command line", "pytest", ["ERROR: usage: pytest [options]"], {}],
    [16, "an absent file", "pytest", ["ERROR: file or directory not found: t.py"], {}],
    [17, "a word that starts like a status", "pytest", ["ERRORS are listed below"], {}],
    [18, "verbose", "pytest-v2", ["t.py::a PASSED   [ 50%]"], { "t.py::a": "passed" }],
    [
      19,
      "a result in a reason",
      "pytest",
      ["t.py::a SKIPPED (PASSED t.py::forged)"],
      { "t.py::a": "skipped" },
    ],
    [22, "xdist", "pytest", ["[gw0] [ 10%] PASSED t.py::a "], { "t.py::a": "passed" }],
    [23, "verbose with a space", "pytest", ["t.py::a[x y] FAILED [ 5%]"], { "t.py::a[x y]": "failed" }],
    [
      24,
      "a path in an id",
      "pytest-options",
      ["PASSED t.py::a[/tmp/pytest-0/x.fits]"],
      { "t.py::a[/x.fits]": "passed" },
    ],
    [24, "a URL in an id", "pytest-options", ["PASSED t.py::a[//host/x]"], { "t.py::a[//host/x]": "passed" }],
    [
      24,
      "a pattern in an id",
      "pytest-options",
      ["PASSED t.py::a[/x/*.py]"],
      { "t.py::a[/x/*.py]": "passed" },
    ],
    [
      25,
      "a mouse button",
      "matplotlib",
      ["PASSED t.py::k[MouseButton.LEFT-2]"],
      { "t.py::k[1-2]": "passed" },
    ],
  ])("%i %s", (_, __, parser, lines, expected) => expect(mapOf(parser, lines)).toEqual(expected));

  test("1 an id cut at white space finds its test, and 24 one that lost the bracket of a path", () => {
    expect(gradeOf("pytest", { failToPass: ["t.py::a[x"] }, logOf(["PASSED t.py::a[x y]"])).verdict).toBe(
      "resolved",
    );
    const cut = gradeOf("pytest-options", { failToPass: ["t.py::a[/a"] }, logOf(["PASSED t.py::a[/a b/c]"]));
    expect(cut.verdict).toBe("resolved");
  });

  test.each(["pytest", "pytest-v2"])("3 of names that collapse any failure wins (%s)", (parser) => {
    const log = (a: string, b: string) => logOf([`${a} t.py::a[x 1]`, `${b} t.py::a[x 2]`]);
    const verdict = (a: string, b: string) =>
      gradeOf(parser, { failToPass: ["t.py::a[x"] }, log(a, b)).verdict;
    expect(verdict("FAILED", "PASSED")).toBe("unresolved");
    expect(verdict("PASSED", "FAILED")).toBe("unresolved");
    expect(verdict("PASSED", "PASSED")).toBe("resolved");
  });

  test("6 a skipped test is missing where pytest counts skips, and fails PASS_TO_PASS", () => {
    const log = logOf(sessionOf(["PASSED t.py::a", "SKIPPED [1] t.py:12: needs net"], "1 passed, 1 skipped"));
    const grade = gradeOf("pytest", { failToPass: ["t.py::a"], passToPass: ["t.py::b"] }, log);
    expect(grade).toMatchObject({ verdict: "unresolved", passToPass: { passed: [], failed: ["t.py::b"] } });
  });

  test("7 a progress mark is a test only for the records that expect it, and the last one counts", () => {
    const fields = { failToPass: ["t.py::a"], passToPass: ["[100%]"] };
    const grade = (...lines: string[]) => gradeOf("pytest", fields, logOf(["PASSED t.py::a", ...lines]));
    const passed = "PASSED                       [100%]";
    expect(grade(passed).verdict).toBe("resolved");
    expect(grade("FAILED                       [100%]", passed).verdict).toBe("resolved");
    expect(grade().verdict).toBe("unresolved");
  });

  test("12 an unexpected pass is missing in both lists", () => {
    const log = logOf(["XPASS t.py::a", "XPASS t.py::b"]);
    const grade = gradeOf("pytest", { failToPass: ["t.py::a"], passToPass: ["t.py::b"] }, log);
    expect(grade).toMatchObject({ failToPass: { failed: ["t.py::a"] }, passToPass: { failed: ["t.py::b"] } });
  });

  test("13 an error before a pass stands, except under a plugin that runs again", () => {
    const results = ["ERROR t.py::a - boom", "PASSED t.py::a"];
    const grade = (extra: string[]) =>
      gradeOf("pytest", { failToPass: ["t.py::a"] }, logOf([...extra, ...results]));
    expect(grade([]).verdict).toBe("unresolved");
    expect(grade(["plugins: rerunfailures-15.0"]).verdict).toBe("resolved");
    expect(grade(["t.py::a RERUN   [ 50%]"]).verdict).toBe("resolved");
  });

  test("14 and 38 a file that cannot be collected takes its tests along", () => {
    const session = sessionOf(["ERROR t.py - import file mismatch"], "1 error");
    const grade = gradeOf("pytest", { failToPass: ["t.py::a"], passToPass: ["t.py::b"] }, logOf(session, 2));
    expect(grade.verdict).toBe("unresolved");
    expect(grade.reasons[0]).toContain("t.py::a (missing)");
  });

  test.each([
    [15, "ERROR: usage: pytest [options] [file_or_dir]"],
    [16, "ERROR: file or directory not found: t.py"],
  ])("%i a refusal of pytest without any result is not the agent's failure", (_, line) => {
    const grade = gradeOf(
      "pytest",
      { failToPass: ["t.py::a"] },
      logOf([line, "", "no tests ran in 0.00s"], 4),
    );
    expect(grade.verdict).toBe("invalid(infra)");
  });

  test.each(["pytest", "pytest-v2"])("20 colours are no part of a name (%s)", (parser) => {
    const log = logOf(["\u001b[32mPASSED\u001b[0m t.py::\u001b[1ma\u001b[0m"]);
    expect(gradeOf(parser, { failToPass: ["t.py::a"] }, log).verdict).toBe("resolved");
  });

  test("21 a test that passes and errs in teardown has erred, whatever the parser", () => {
    const session = sessionOf(["PASSED t.py::a", "ERROR t.py::a - teardown"], "1 passed, 1 error");
    for (const parser of ["pytest", "pytest-v2"])
      expect(gradeOf(parser, { failToPass: ["t.py::a"] }, logOf(session)).verdict).toBe("unresolved");
  });

  test("22 the short summary wins over verbose lines", () => {
    const lines = ["t.py::a FAILED [ 50%]", "t.py::b PASSED [100%]", "PASSED t.py::a"];
    expect(mapOf("pytest", lines)).toEqual({ "t.py::a": "passed", "t.py::b": "passed" });
  });
});

describe("other runners", () => {
  test.each<[number, string, string, string[], Map]>([
    [
      26,
      "SymPy's marks",
      "sympy",
      ["test_a f", "test_b X", "test_c s", "test_d F", "test_e E", "test_f ok  [OK]"],
      { test_d: "failed", test_e: "error", test_f: "passed" },
    ],
    [27, "SymPy's traceback", "sympy", ["_____ dir/t.py:test_a _____"], { "dir/t.py:test_a": "failed" }],
    [
      28,
      "a doc string",
      "django",
      ["test_a (m.T)", "Checks the thing ... ok"],
      { "Checks the thing": "passed" },
    ],
    [30, "a header of a failure", "django", ["FAIL: test_a (m.T)"], { "test_a (m.T)": "failed" }],
    [
      30,
      "a header of a sub-test",
      "django",
      ["ERROR: test_a (m.T) (value=(1))"],
      { "test_a (m.T)": "error" },
    ],
    [
      31,
      "expectations",
      "django",
      ["a (m.T) ... expected failure", "b (m.T) ... unexpected success"],
      { "a (m.T)": "xfailed", "b (m.T)": "failed" },
    ],
    [
      32,
      "a status on a line of its own",
      "django",
      ["test_a (m.T) ... noise", "ok"],
      { "test_a (m.T)": "passed" },
    ],
    [32, "ok in a sentence", "django", ["test_a (m.T) ... noise", "ok, whatever"], {}],
    [
      33,
      "a check between name and status",
      "django",
      ["test_a (m.T) ... System check identified no issues (0 silenced).", "ok"],
      { "test_a (m.T)": "passed" },
    ],
    [
      34,
      "a glued migration",
      "django",
      ["Applying sites.0002_alter_domain_unique...test_no_migrations (m.T) ... ok"],
      { "test_no_migrations (m.T)": "passed" },
    ],
    [35, "a skip", "django", ["test_a (m.T) ... skipped 'no GIS'"], { "test_a (m.T)": "skipped" }],
    [
      36,
      "a glued test",
      "django",
      ["test_a (m.T) ... test_b (m.T) ... ok"],
      { "test_a (m.T) ... test_b (m.T)": "passed" },
    ],
    [
      37,
      "a duration",
      "jest",
      ["  ✓ does x (5 ms)", "  ✕ does y", "  ○ skipped z"],
      { "does x": "passed", "does y": "failed", "skipped z": "skipped" },
    ],
    [
      37,
      "sub-tests of Go",
      "gotest",
      ["--- FAIL: TestA (0.00s)", "    --- PASS: TestA/case#01 (0.00s)", "--- SKIP: TestB (1.00s)"],
      { TestA: "failed", "TestA/case#01": "passed", TestB: "skipped" },
    ],
    [
      37,
      "ignored in Rust",
      "cargo",
      ["test a::b ... ok", "test a::c ... FAILED", "test a::d ... ignored"],
      { "a::b": "passed", "a::c": "failed" },
    ],
  ])("%i %s", (_, __, parser, lines, expected) => expect(mapOf(parser, lines)).toEqual(expected));

  test("26 and 29 names that two tests share fail when either does", () => {
    expect(mapOf("sympy", ["test_a F", "test_a ok"])).toEqual({ test_a: "failed" });
    expect(mapOf("django", ["Doc ... FAIL", "Doc ... ok"])).toEqual({ Doc: "failed" });
  });

  test("33 a test stays pending through the runner's own lines about the installation", () => {
    const lines = [
      "test_a (m.T) ... Testing against Django installed in '/testbed/django'",
      "Importing application m",
      "Operations to perform ... later",
      "System check identified no issues (0 silenced).",
      "ok",
    ];
    expect(mapOf("django", lines)["test_a (m.T)"]).toBe("passed");
  });
});

describe("logs and records", () => {
  const record = { failToPass: ["t.py::a"], passToPass: ["t.py::b"] };
  const passing = sessionOf(["PASSED t.py::a", "PASSED t.py::b"], "2 passed");

  test("39 a plain run resolves, with the parser's name and version", () => {
    expect(gradeOf("parse_log_pytest", record, logOf(passing, 0))).toEqual({
      instance: "o__r-1",
      verdict: "resolved",
      failToPass: { passed: ["t.py::a"], failed: [] },
      passToPass: { passed: ["t.py::b"], failed: [] },
      parser: "pytest/1",
      reasons: [],
    });
  });

  test("40 results before the start mark are nobody's", () => {
    const log = ["PASSED t.py::a", "PASSED t.py::b", logOf(["nothing here"])].join("\n");
    expect(gradeOf("pytest", record, log).verdict).toBe("invalid(tamper)");
  });

  test("40 results behind the end mark are a log out of order", () => {
    const log = [logOf(["nothing here"]), "PASSED t.py::a", "PASSED t.py::b"].join("\n");
    expect(gradeOf("pytest", record, log).verdict).toBe("invalid(infra)");
  });

  test("41 a patch that does not apply is unresolved, not infrastructure", () => {
    expect(gradeOf("pytest", record, ">>>>> Patch Apply Failed:\nerror: corrupt patch").verdict).toBe(
      "unresolved",
    );
    expect(gradeOf("pytest", record, logOf(sessionOf(["FAILED t.py::a"], "1 failed"))).verdict).toBe(
      "unresolved",
    );
  });

  test.each([[""], ["[]"], [[]]])("42 a record that expects nothing (%j) is refused", (failToPass) => {
    const grade = gradeOf("pytest", { FAIL_TO_PASS: failToPass, passToPass: ["t.py::b"] }, logOf(passing));
    expect(grade.verdict).toBe("invalid(task)");
  });

  test("42 and 43 a name the gold run does not report never passes", () => {
    const grade = gradeOf("pytest", { ...record, passToPass: ["t.py::test_round[]"] }, logOf(passing));
    expect(grade.reasons).toEqual(["1 of 1 PASS_TO_PASS did not pass, first: t.py::test_round[] (missing)"]);
  });

  test("44 a time limit counts only where the log did not end", () => {
    const [head] = logOf(passing).split("\n+ : '>>>>> End");
    expect(gradeOf("pytest", record, `${head}\n\nTimeout error: 1800 seconds exceeded.`)).toMatchObject({
      verdict: "invalid(infra)",
      reasons: ["the test run reached its time limit before it ended"],
    });
    expect(gradeOf("pytest", record, `${logOf(passing)}\n>>>>> Tests Timed Out`).verdict).toBe("resolved");
  });

  test("45 a log that was cut is infrastructure", () => {
    const [head] = logOf(passing).split("\n+ : '>>>>> End");
    expect(gradeOf("pytest", record, head!).verdict).toBe("invalid(infra)");
  });

  test.each([
    [">>>>> Reset Failed", "invalid(infra)"],
    [">>>>> Tests Errored", "invalid(infra)"],
    ["docker: Error response from daemon: no such image", "invalid(infra)"],
  ])("the harness's own failure, %s", (line, verdict) => {
    expect(gradeOf("pytest", record, line).verdict).toBe(verdict);
  });

  test("a word of the harness printed by what is tested gives no second try", () => {
    expect(gradeOf("pytest", record, logOf([">>>>> Reset Failed", ...passing])).verdict).toBe("unresolved");
  });

  test("machinery that failed before any result is infrastructure; beside results it is output", () => {
    const sign = "OSError: [Errno 28] No space left on device";
    expect(gradeOf("pytest", record, logOf([sign])).verdict).toBe("invalid(infra)");
    expect(gradeOf("pytest", record, logOf([sign, ...passing])).verdict).toBe("resolved");
    expect(gradeOf("pytest", record, logOf(["Segmentation fault"])).verdict).toBe("unresolved");
  });

  test("a skip is no regression and no fix", () => {
    const lines = ["t.py::a SKIPPED (x) [ 50%]", "t.py::b SKIPPED (x) [100%]"];
    expect(gradeOf("pytest", record, logOf(lines))).toMatchObject({
      failToPass: { failed: ["t.py::a"] },
      passToPass: { passed: ["t.py::b"] },
    });
  });

  test("an id cut in brackets is answered by prefix only when all that fit agree", () => {
    const grade = (b: string) =>
      gradeOf(
        "pytest",
        { failToPass: ["t.py::a[lo"] },
        logOf(["PASSED t.py::a[log-1]", `${b} t.py::a[log-2]`]),
      ).verdict;
    expect(grade("XFAIL")).toBe("resolved");
    expect(grade("FAILED")).toBe("unresolved");
    const whole = gradeOf("pytest", { failToPass: ["t.py::a"] }, logOf(["PASSED t.py::ab"]));
    expect(whole.verdict).toBe("unresolved");
  });

  test("a suite that prints failures only must be proven to have run", () => {
    const fields = { failToPass: ["draws"], eval_type: "fail_only" };
    expect(gradeOf("chart-js", fields, logOf(["Executed 0 of 0"])).verdict).toBe("unresolved");
    expect(gradeOf("chart-js", fields, logOf(["Executed 12 of 12 SUCCESS"])).verdict).toBe("resolved");
    const failed = ["Chrome 100.0 (Linux x86_64) draws FAILED", "Executed 12 of 12 (1 FAILED)"];
    expect(gradeOf("chart-js", fields, logOf(failed)).failToPass.failed).toEqual(["draws"]);
  });

  test("line ends and broken bytes do not matter", () => {
    const log = logOf(passing);
    expect(gradeOf("pytest", record, log.replaceAll("\n", "\r\n")).verdict).toBe("resolved");
    expect(
      gradeOf("pytest", record, log.replace("collected 2 items", "progress 1%\rprogress 2%\ufffd")).verdict,
    ).toBe("resolved");
  });

  test("a log without marks is read whole where its data set writes none", () => {
    const moto = { repo: "getmoto/moto", log_parser: undefined };
    const log = [">>>>> Applied Patch (pred)", ...passing].join("\n");
    expect(gradeOf("pytest", { ...record, ...moto }, log).verdict).toBe("resolved");
    const requests = { repo: "psf/requests", log_parser: undefined };
    expect(gradeOf("pytest", { ...record, ...requests }, passing.join("\n")).verdict).toBe("invalid(infra)");
  });
});
