/** Every parser reads the log of its runner; every name of the data sets finds one; the tables of the docs are these. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import {
  gradeLog,
  judgeResults,
  PARSER_ALIASES,
  PARSERS,
  parserLabel,
  REPOSITORY_PARSERS,
  readRecord,
  TestMap,
} from "../src/index.js";
import { gradeOf, logOf, mapOf, type RecordFields, recordFor } from "./logs.js";
import { RUNNER_LOGS } from "./runner-logs.js";

test.each(RUNNER_LOGS)("$parser reads its runner's log", ({ parser, log, map }) => {
  // Escape sequences are removed before a parser sees a line.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const lines = log.replace(/\u001b\[[0-9;]*[A-Za-z]/g, "").split("\n");
  expect(mapOf(parser, lines)).toEqual(map);
});

test("every parser has a log, here or among the edge cases", () => {
  const elsewhere = [
    "pytest",
    "pytest-options",
    "pytest-v2",
    "matplotlib",
    "seaborn",
    "django",
    "sympy",
    "jest",
    "vitest",
    "gotest",
    "cargo",
  ];
  expect([...RUNNER_LOGS.map(({ parser }) => parser), ...elsewhere].sort()).toEqual(
    [...PARSERS.keys()].sort(),
  );
});

describe("choice of a parser", () => {
  const label = (fields: Record<string, unknown>) =>
    parserLabel(
      readRecord({ instance_id: "a-1", FAIL_TO_PASS: ["x"], PASS_TO_PASS: [], ...fields }, "test").parser,
    );

  test.each([
    [{ repo: "astropy/astropy" }, "pytest-v2/1"],
    [{ repo: "PyData/XArray" }, "pytest/1"],
    [{ repo: "a/b", log_parser: "parse_log_pytest_options" }, "pytest-options/1"],
    [{ repo: "a/b", install_config: { log_parser: "parse_log_scikit" } }, "pytest-v2/1"],
    [{ repo: "a/b", install_config: '{"log_parser":"parse_log_gotest"}' }, "gotest/1"],
    [{ repo: "django/django", log_parser: "" }, "django/1"],
    [{ repo: "a/b", log_parser: "pytest/1" }, "pytest/1"],
    [{ repo: "jekyll/jekyll", instance_id: "jekyll__jekyll-8761" }, "cucumber/1"],
    [{ repo: "jekyll/jekyll", instance_id: "jekyll__jekyll-9141" }, "minitest/1"],
    [{ repo: "immutable-js/immutable-js", instance_id: "immutable-js__immutable-js-2005" }, "jest-json/1"],
    [{ repo: "alibaba-fusion/next", version: "1.27" }, "next-cypress/1"],
    [{ repo: "GoogleChrome/lighthouse", version: "9.5" }, "lighthouse-mocha/1"],
    [{ repo: "GoogleChrome/lighthouse", version: 2.1 }, "mocha-json/1"],
  ])("%j is read by %s", (fields, expected) => expect(label(fields)).toBe(expected));

  test("a version that is not there is refused, by name", () => {
    expect(() => label({ repo: "a/b", log_parser: "pytest/7" })).toThrow(
      'log_parser names no parser: "pytest/7"',
    );
  });

  test("every alias and every repository leads to a parser", () => {
    for (const name of [...Object.keys(PARSER_ALIASES), ...PARSERS.keys()])
      expect(label({ log_parser: name })).toMatch(/\/1$/);
    for (const repo of REPOSITORY_PARSERS.keys()) expect(label({ repo })).toMatch(/\/1$/);
  });

  test("lists may be lists, JSON or Python as text", () => {
    const spelled = [["a", "b's"], '["a", "b\'s"]', `['a', "b's"]`, `['a', 'b\\'s']`];
    for (const failToPass of spelled) {
      const record = readRecord(
        { instance_id: "a-1", log_parser: "pytest", fail_to_pass: failToPass, pass_to_pass: null },
        "test",
      );
      expect(record).toMatchObject({ failToPass: ["a", "b's"], passToPass: [] });
    }
  });
});

test("a name may be repeated in a record, and keeps its place", () => {
  const fields = { failToPass: ["t.py::b", "t.py::a", "t.py::b"] };
  expect(gradeOf("pytest", fields, logOf(["PASSED t.py::a", "PASSED t.py::b"])).failToPass.passed).toEqual(
    fields.failToPass,
  );
});

test("results that did not come from a log are judged by the same lists", () => {
  const tests = new TestMap();
  tests.add("a", "passed");
  tests.add("b", "skipped");
  const judged = (fields: RecordFields) => judgeResults(recordFor("junit-xml", fields), tests);
  expect(judged({ failToPass: ["a"], passToPass: ["b"] })).toMatchObject({
    verdict: "resolved",
    reasons: [],
  });
  expect(judged({ failToPass: ["b"], passToPass: ["a"] })).toMatchObject({ verdict: "unresolved" });
  expect(judged({ passToPass: ["a"] }).verdict).toBe("invalid(task)");
});

test("a log in a runner's own format needs no marks", () => {
  const xml = RUNNER_LOGS.find(({ parser }) => parser === "junit-xml")!.log;
  const record = recordFor("junit-xml", {
    failToPass: ["tests/test_a.py::TestB::test_c[x < y]"],
    passToPass: ["tests.test_a.test_e"],
  });
  expect(gradeLog(record, xml).verdict).toBe("resolved");
  expect(gradeLog(record, "").verdict).toBe("invalid(infra)");
});

describe("docs/grading.md", () => {
  const page = readFileSync(fileURLToPath(new URL("../../../docs/grading.md", import.meta.url)), "utf8");

  test("lists every parser with what it reads", () => {
    for (const parser of PARSERS.values())
      expect(page).toContain(`| \`${parserLabel(parser)}\` | ${parser.reads} |`);
  });

  test("lists every repository", () => {
    for (const repo of REPOSITORY_PARSERS.keys()) expect(page.toLowerCase()).toContain(repo);
  });
});
