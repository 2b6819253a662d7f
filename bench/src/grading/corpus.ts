/**
 * Owns the logs of the grading benchmark: for each parser one long log of the shape its runner prints, and, where
 * they are present, real logs with official verdicts.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface GradingCase {
  readonly name: string;
  readonly record: Readonly<Record<string, unknown>>;
  readonly logFile: string;
  readonly bytes: number;
}

const START = "+ : '>>>>> Start Test Output'";
const END = "+ : '>>>>> End Test Output'";
/** Between results a run prints tracebacks, warnings and captured output: most of a log. */
const OUTPUT = [
  "    def test_values(self, arguments):",
  ">       assert compute(arguments) == [1, 2, 3, 4, 5, 6, 7, 8]",
  "E       AssertionError: assert [1, 2, 3] == [1, 2, 3, 4, 5, 6, 7, 8]",
  "  /opt/env/lib/python3.9/site-packages/package/module.py:127: DeprecationWarning: this name will go away",
  "INFO     package.module:module.py:88 read 1024 rows of the table in 0.031 seconds",
  "",
] as const;
const SHAPES = [
  {
    name: "pytest",
    repo: "pydata/xarray",
    version: "0.12",
    logParser: "parse_log_pytest",
    result: (at: number) => `PASSED tests/t.py::test_${at}`,
  },
  {
    name: "pytest-options",
    repo: "psf/requests",
    version: "2.26",
    logParser: "parse_log_pytest_options",
    result: (at: number) => `PASSED tests/t.py::test_${at}`,
  },
  {
    name: "pytest-v2",
    repo: "astropy/astropy",
    version: "5.1",
    logParser: "parse_log_pytest_v2",
    result: (at: number) => `PASSED tests/t.py::test_${at}`,
  },
  {
    name: "django",
    repo: "django/django",
    version: "3.2",
    logParser: "parse_log_django",
    result: (at: number) => `test_${at} (app.tests.Values) ... ok`,
  },
  {
    name: "sympy",
    repo: "sympy/sympy",
    version: "1.4",
    logParser: "parse_log_sympy",
    result: (at: number) => `test_${at} ok`,
  },
  {
    name: "jest",
    repo: "babel/babel",
    version: "13928",
    logParser: "parse_log_jest",
    result: (at: number) => `    ✓ test ${at} (5 ms)`,
  },
  {
    name: "gotest",
    repo: "gin-gonic/gin",
    version: "3741",
    logParser: "parse_log_gotest",
    result: (at: number) => `--- PASS: Test${at} (0.01s)`,
  },
] as const;
const NAMES: Readonly<Record<string, (result: string) => string>> = {
  django: (result) => result.slice(0, -" ... ok".length),
  sympy: (result) => result.slice(0, -" ok".length),
  jest: (result) => result.trim().slice(2, -" (5 ms)".length),
  gotest: (result) => result.slice("--- PASS: ".length, -" (0.01s)".length),
};

/** Writes one log of about `bytes` for each parser. */
export function syntheticCases(directory: string, bytes: number): GradingCase[] {
  return SHAPES.map(({ name, repo, version, logParser, result }) => {
    const lines = ["+ git status", START];
    const names: string[] = [];
    for (let size = 0, at = 0; size < bytes; at += 1) {
      const line = result(at);
      names.push((NAMES[name] ?? ((text) => text.slice("PASSED ".length)))(line));
      lines.push(...OUTPUT, line);
      size += OUTPUT.join("\n").length + line.length + 2;
    }
    lines.push(END, "");
    const logFile = join(directory, `${name}.txt`);
    const text = lines.join("\n");
    writeFileSync(logFile, text);
    const lists = { FAIL_TO_PASS: names.slice(0, 5), PASS_TO_PASS: names.slice(5, 1_000) };
    const record = { instance_id: `bench__${name}-1`, repo, version, log_parser: logParser, ...lists };
    return { name, record, logFile, bytes: Buffer.byteLength(text) };
  });
}

/** The real logs below a data directory; none when it is absent. */
export function realCases(data: string): GradingCase[] {
  const file = join(data, "records.jsonl");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown> & { instance_id: string })
    .map((record) => ({ record, logFile: join(data, "logs", record.instance_id, "test_output.txt") }))
    .filter(({ logFile }) => existsSync(logFile))
    .map(({ record, logFile }) => ({ name: "real", record, logFile, bytes: readFileSync(logFile).length }));
}
