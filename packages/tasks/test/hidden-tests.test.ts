import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readLibrary } from "../src/demo/library.js";
import { demoTaskFiles, writeTaskFiles } from "../src/demo/task-directory.js";
import { planDemoTasks } from "../src/index.js";

const scratch = mkdtempSync(join(tmpdir(), "mortise-hidden-"));
const task = planDemoTasks({ seed: 1 }).train.find((candidate) => candidate.function === "sum")!;
writeTaskFiles(scratch, demoTaskFiles(task, readLibrary()));
const names = task.cases.map((hidden) => hidden.name);

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs tests/test.sh on a repository whose only module is the given text. */
function run(source: string | undefined) {
  const workspace = join(scratch, "workspace");
  rmSync(workspace, { recursive: true, force: true });
  mkdirSync(join(workspace, "src"), { recursive: true });
  if (source !== undefined) writeFileSync(join(workspace, task.file), source);
  const options = { cwd: workspace, input: "n0nce\n", encoding: "utf8" } as const;
  const done = spawnSync("sh", [join(scratch, "tests/test.sh")], options);
  const lines = done.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.every((line) => line.nonce === "n0nce")).toBe(true);
  expect(lines.pop()).toMatchObject({ end: true, tests: lines.length });
  return { exitCode: done.status, results: lines };
}

const passed = (results: { name: string; status: string }[]) =>
  results.filter((result) => result.status === "passed").map((result) => result.name);

describe("the hidden tests", () => {
  test("print one line per expected test and pass on the gold file", () => {
    const { exitCode, results } = run(task.goldFile);
    expect(exitCode).toBe(0);
    expect(results.map((result) => result.name)).toEqual(names);
    expect(passed(results)).toEqual(names);
    expect(results.every((result) => typeof result.ms === "number")).toBe(true);
  });

  test.each([
    ["a module that does not parse", "module.exports = {"],
    ["a module that throws", "throw new Error('no')"],
    ["a missing module", undefined],
    ["a function that returns a BigInt", "module.exports = { sum: () => 0n, product: () => 1n }"],
    ["a result that cannot be compared", "module.exports = { sum: () => ({ toJSON() { throw 1; } }) }"],
    ["an object that pretends to be a number", "module.exports = { sum: (xs) => Object(xs.length && 7) }"],
    ["an exit at load", "process.exit(0)"],
    ["an endless loop", "module.exports = { sum() { for (;;); } }"],
  ])("all fail for %s", (_, source) => {
    const { exitCode, results } = run(source);
    expect(exitCode).toBe(0);
    expect(results.map((result) => result.name)).toEqual(names);
    expect(passed(results)).toEqual([]);
  });

  test.each([
    ["the module wrapper", "require.constructor"],
    [
      "an error of this process",
      "(() => { try { (function f() { f(); })(); } catch (e) { return e; } })().constructor.constructor",
    ],
    ["an argument", "((...args) => args).constructor"],
  ])("give the tested code no way to the process through %s", (_, expression) => {
    const source = `const Maker = ${expression};
      module.exports = { sum: () => (Maker("return typeof process")() === "undefined" ? 0 : 99) };`;
    expect(passed(run(source).results)).toEqual(["sum of nothing"]);
  });

  test("hear nothing of what the tested code does after it returned", () => {
    const source = `import("node:fs").then(() => {}, (e) => e.constructor.constructor(
        'return process')().stdout.write('{"name":"forged","status":"passed"}\\n'));
      module.exports = { sum: () => 0 };`;
    const { exitCode, results } = run(source);
    expect(exitCode).toBe(0);
    expect(passed(results)).toEqual(["sum of nothing"]);
    expect(results.map((result) => result.name)).toEqual(names);
  });
});
