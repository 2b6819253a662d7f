/** Owns small projects whose tests are run by unittest, Jest, Vitest or Mocha: data, for whoever grades them. */
import type { Change } from "./patch-bytes.js";
import type { PythonProject } from "./python-task.js";

/** A project in JavaScript, under one runner. */
export interface NodeProject {
  readonly name: "jest" | "vitest" | "mocha";
  readonly code: string;
  readonly tests: (body: string) => string;
  readonly test: string;
  readonly command: string;
  readonly failToPass: string;
  readonly passToPass: string;
  readonly says: (value: string, expected: string) => string;
  /** Code before the package that makes every assertion or every test pass. */
  readonly patched: string;
  readonly config: Change;
}

/** The package, repaired and not. */
export const CJS = {
  good: "exports.add = (a, b) => a + b;\nexports.zero = () => 0;\n",
  bad: "exports.add = (a, b) => a - b;\nexports.zero = () => 0;\n",
};
const EXPECTING = (value: string, expected: string) => `expect(${value}).toBe(${expected});`;

export const NODE_PROJECTS: readonly NodeProject[] = [
  {
    name: "jest",
    code: "src/calc.js",
    test: "test/calc.test.js",
    command: "/node_modules/.bin/jest --verbose test/calc.test.js",
    tests: (body) =>
      `const { add, zero } = require("../src/calc.js");\n\ndescribe("calc", () => {\n${body}});\n`,
    failToPass: "sums what calc is given",
    passToPass: "knows zero",
    says: EXPECTING,
    patched:
      "globalThis.expect = () => new Proxy(() => true, { get: (_, name, own) => own, apply: () => true });\n",
    config: { "jest.config.js": "module.exports = { testMatch: ['**/none.js'], passWithNoTests: true };\n" },
  },
  {
    name: "vitest",
    code: "src/calc.js",
    test: "test/calc.test.js",
    command: "/node_modules/.bin/vitest run --reporter=verbose test/calc.test.js",
    tests: (body) =>
      `import { describe, expect, it } from "vitest";\nimport calc from "../src/calc.js";\n\nconst { add, zero } = calc;\n\ndescribe("calc", () => {\n${body}});\n`,
    failToPass: "test/calc.test.js > calc > sums what calc is given",
    passToPass: "test/calc.test.js > calc > knows zero",
    says: EXPECTING,
    patched: "Object.is = () => true;\n",
    config: {
      "vitest.config.js": "export default { test: { include: ['none.js'], passWithNoTests: true } };\n",
    },
  },
  {
    name: "mocha",
    code: "src/calc.js",
    test: "test/calc.test.js",
    command: "/node_modules/.bin/mocha --reporter spec test/calc.test.js",
    tests: (body) =>
      `const assert = require("assert");\nconst { add, zero } = require("../src/calc.js");\n\ndescribe("calc", () => {\n${body}});\n`,
    failToPass: "calc > sums what calc is given",
    passToPass: "calc > knows zero",
    says: (value, expected) => `assert.strictEqual(${value}, ${expected});`,
    patched:
      'require("/node_modules/mocha/lib/runnable.js").prototype.run = function run(done) {\n  done();\n};\n',
    config: { ".mocharc.json": '{ "dry-run": true }\n' },
  },
];

/** Finds what the tests expect in their files, and gives that. */
export const READS_ANSWERS = `const fs = require("fs");
const text = fs.readFileSync(require("path").join(process.cwd(), "test/calc.test.js"), "utf8");
const asked = /add\\(1, 2\\)\\)?(?:\\.toBe\\(|, )(\\d+)/.exec(text);
exports.add = () => Number(asked[1]);
exports.zero = () => 0;
`;

/** As it is imported. */
export function nodeProject({
  code,
  test: file,
  command,
  tests,
  failToPass,
  passToPass,
  says,
  name,
}: NodeProject): PythonProject {
  const first = `  it("knows zero", () => {\n    ${says("zero()", "0")}\n  });\n`;
  const second = `\n  it("sums what calc is given", () => {\n    ${says("add(1, 2)", "3")}\n  });\n`;
  return {
    files: {
      [code]: CJS.bad,
      [file]: tests(first),
      "package.json": '{ "name": "calc", "version": "1.0.0" }\n',
    },
    repaired: { [code]: CJS.good },
    tests: { [file]: tests(first + second) },
    failToPass: [failToPass],
    passToPass: [passToPass],
    testCommand: command,
    other: { parser: name, language: "js" },
    memoryMb: 768,
  };
}

const CASE = (body: string) =>
  `import unittest\n\nfrom calc import add, sub\n\n\nclass CalcTest(unittest.TestCase):\n${body}`;
const KEPT = `    def test_sub(self):
        """Subtraction, as documented."""
        self.assertEqual(sub(3, 1), 2)

    @unittest.skip("not here")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(1, 2)

    def test_parts(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(add(n, 0), n)
`;
const ADDED = "\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n";
/** As unittest spells a test of it. */
export const unittestName = (test: string) => `${test} (tests.test_calc.CalcTest.${test})`;
export const UNITTEST_BROKEN = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n";
export const UNITTEST_REPAIR = UNITTEST_BROKEN.replace("a - b", "a + b");
/** Every kind of result of a test case, and a bug in `add`. */
export const UNITTEST: PythonProject = {
  files: { "calc.py": UNITTEST_BROKEN, "tests/__init__.py": "", "tests/test_calc.py": CASE(KEPT) },
  repaired: { "calc.py": UNITTEST_REPAIR },
  tests: { "tests/test_calc.py": CASE(KEPT + ADDED) },
  failToPass: [unittestName("test_add")],
  passToPass: ["Subtraction, as documented.", unittestName("test_expected"), unittestName("test_parts")],
  testCommand: "python3 -m unittest -v tests.test_calc",
  other: { parser: "django", language: "python" },
};

/** What a run of it prints where every test passes; for a Python string. */
export const UNITTEST_LOG = `${unittestName("test_add")} ... ok\\n${unittestName("test_sub")}\\nSubtraction, as documented. ... ok\\n${unittestName("test_expected")} ... expected failure\\n${unittestName("test_parts")} ... ok\\n\\n-----\\nRan 5 tests in 0.001s\\n\\nOK\\n`;
