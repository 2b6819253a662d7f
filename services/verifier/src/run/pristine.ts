/**
 * Owns what of an agent's change is left out when it is graded, and why: what configures or runs the tests, what
 * programs load without being asked to, what was compiled. Does not apply anything (the sandbox-manager leaves it out).
 *
 * P1  What the task's own repair changes is applied, unless it is a compiled file: the repair may need it.
 * P2  Files the test patch changes are left out always: they are replaced before the tests.
 */
import { readFileSync } from "node:fs";
import { parsePatch, type Task } from "@mortise/tasks";
import { STANDARD_MODULES } from "./standard-modules.js";

export interface PristineRules {
  readonly rules: readonly { readonly pattern: string; readonly reason: string }[];
  readonly keep: readonly string[];
}

const CONFIGURATION = [
  ...["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"],
  ...["noxfile.py", ".coveragerc", "package.json", ".npmrc", ".mocharc*", "jest.config.*", "jest.setup.*"],
  ...["vitest.config.*", "vitest.workspace.*", "vite.config.*", "karma.conf.*", "ava.config.*", ".taprc"],
  ...["vitest.setup.*", "setupTests.*", "*.snap", ".cargo", "rust-toolchain*", "nextest.toml"],
  ...["babel.config.*", ".babelrc*", "cypress.config.*", "playwright.config.*", ".rspec", "phpunit.xml*"],
];
/** Run or loaded by programs that nobody told to. */
const START_UP = [
  ...["sitecustomize.py", "usercustomize.py", "*.pth", "*.egg-info", "*.dist-info", "*.egg-link"],
  ...[".pdbrc", ".pythonrc*"],
];
const COMPILED = ["*.pyc", "*.pyo", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".nox"];
/** What runs with the tests though it lies in the repository, by the parser that reads them. */
const RUNNERS: Readonly<Record<string, readonly string[]>> = {
  django: ["tests/runtests.py", "django/test"],
  // Every file of a package's tests is compiled into one program.
  gotest: ["**/*_test.go"],
  sympy: ["bin/test", "sympy/testing", "sympy/utilities/runtests.py"],
};
/** Packages, the runner among them, where they lie in the work tree. */
const PACKAGES = ["**/node_modules", "**/site-packages"];
const EVERY_LEVEL = "**/";

/** The rules for a task whose tests have names: of others nobody knows what a repair may have to change. */
export function pristineRules(task: Task): PristineRules {
  const named = (names: readonly string[], reason: string) =>
    names.map((name) => ({ pattern: `${EVERY_LEVEL}${name}`, reason }));
  const shadows = STANDARD_MODULES.flatMap((name) => [`${name}.py`, `${name}/__init__.py`]).map(
    (pattern) => ({
      pattern,
      reason: "would be loaded for a standard module",
    }),
  );
  const { expected } = task.tests;
  const runner = expected?.format === "log" ? (RUNNERS[expected.parser] ?? []) : [];
  const gold = goldPaths(task);
  if (gold === undefined) return { rules: named(COMPILED, "compiled"), keep: [] };
  return {
    rules: [
      ...named(COMPILED, "compiled"),
      ...named(CONFIGURATION, "configures the tests"),
      ...named(START_UP, "is loaded unasked"),
      ...[...runner, ...PACKAGES].map((pattern) => ({ pattern, reason: "is part of the test runner" })),
      ...shadows,
    ],
    keep: gold.filter((path) => !isCompiled(path)),
  };
}

/** The paths the task's own repair changes; undefined when it is no diff. */
function goldPaths({ solution }: Task): string[] | undefined {
  if (solution?.patch === undefined) return undefined;
  const text = readFileSync(solution.patch, "utf8");
  const { files } = parsePatch(text.endsWith("\n") ? text : `${text}\n`);
  return files.flatMap(({ oldPath, newPath }) => [oldPath, newPath].filter((path) => path !== undefined));
}

function isCompiled(path: string): boolean {
  return path.split("/").some((part) => /\.py[co]$/.test(part) || COMPILED.includes(part));
}
