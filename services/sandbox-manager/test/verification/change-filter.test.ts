/** What of a change is not applied, by the rules of whoever grades it. */
import { expect, test } from "vitest";
import type { Patch, PatchEntry } from "../../src/patch/patch.js";
import { filterPatch } from "../../src/verification/change-filter.js";

const file = (path: string): PatchEntry => ({ kind: "file", path, mode: 0o644, content: Buffer.from("x") });
const change = (...entries: PatchEntry[]): Patch => ({ base: "b", entries, skipped: [] });
const left = (patch: Patch, pattern: string, keep: string[] = []) =>
  filterPatch(patch, { rules: [{ pattern, reason: "r" }], keep }).patch.entries.map(({ path }) => path);

test("a name is covered at every level, and what is below a directory of that name", () => {
  const patch = change(
    file("conftest.py"),
    file("a/b/conftest.py"),
    file("conftest.py/x"),
    file("conftest_py"),
  );
  expect(left(patch, "**/conftest.py")).toEqual(["conftest_py"]);
});

test("a star stands for part of a name, and every other character for itself", () => {
  const patch = change(file("jest.config.ts"), file("jestXconfig.ts"), file("a/x.pth"), file("a/pth"));
  expect(left(patch, "**/jest.config.*")).toEqual(["jestXconfig.ts", "a/x.pth", "a/pth"]);
  expect(left(patch, "**/*.pth")).toEqual(["jest.config.ts", "jestXconfig.ts", "a/pth"]);
});

test("an exact path is covered with what would stand in its way, above and below it", () => {
  const link: PatchEntry = { kind: "symlink", path: "tests", target: "mine" };
  const patch = change(
    link,
    file("tests/t.py"),
    file("tests/t.py/x"),
    file("tests/other.py"),
    file("testsuite"),
  );
  expect(left(patch, "tests/t.py")).toEqual(["tests/other.py", "testsuite"]);
});

test("what is to be kept is applied whatever the rules say, and each omission has its reason", () => {
  const patch = change(file("setup.cfg"), file("sub/setup.cfg"));
  const { patch: after, stripped } = filterPatch(patch, {
    rules: [
      { pattern: "sub/setup.cfg", reason: "first" },
      { pattern: "**/setup.cfg", reason: "second" },
    ],
    keep: ["setup.cfg"],
  });
  expect(after.entries.map(({ path }) => path)).toEqual(["setup.cfg"]);
  expect(stripped).toEqual([{ path: "sub/setup.cfg", reason: "first" }]);
  expect(after.base).toBe("b");
});
