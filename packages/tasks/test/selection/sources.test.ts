/** Files a selection is made from: several indexes, solve rates, exclusions, evaluation sets. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type IndexedTask,
  placedBelow,
  proveDisjoint,
  readExclusions,
  readIdentities,
  readSolveRates,
  unionOf,
  weighted,
  withSolveRates,
  writeIndex,
} from "../../src/selection/index.js";
import { task, tasksOf } from "./tasks.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "mortise-select-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function index(name: string, tasks: readonly IndexedTask[]): string {
  const path = join(directory, name);
  mkdirSync(path);
  writeIndex(path, tasks, "train");
  return path;
}

function file(name: string, text: string): string {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
}

describe("several sources", () => {
  test("each task is found from the index it comes from, and from the new one", async () => {
    const union = await unionOf([
      { path: index("a", tasksOf("a/b", 1)) },
      { path: join(index("c", tasksOf("c/d", 1, { path: "deep/c__d-0" })), "index.parquet") },
    ]);
    expect(union.tasks.map(({ path }) => path)).toEqual([
      join(directory, "a/a__b-0"),
      join(directory, "c/deep/c__d-0"),
    ]);
    const placed = placedBelow(join(directory, "new"), union.tasks);
    expect(placed.map(({ path }) => path)).toEqual(["../a/a__b-0", "../c/deep/c__d-0"]);
  });

  test("are drawn as often as their weights say, however many tasks they have", async () => {
    const union = await unionOf([
      { path: index("a", tasksOf("a/b", 10)), weight: 3 },
      { path: index("c", [...tasksOf("c/d", 1, { weight: 2 }), ...tasksOf("e/f", 1)]), weight: 1 },
    ]);
    const weights = weighted(union.tasks, union);
    const sum = (repository: string) =>
      weights.reduce((total, of) => total + (of.repository === repository ? of.weight! : 0), 0);
    expect(sum("a/b") / (sum("c/d") + sum("e/f"))).toBeCloseTo(3, 12);
    expect(sum("c/d") / sum("e/f")).toBeCloseTo(2, 12);
    expect(sum("a/b") + sum("c/d") + sum("e/f")).toBeCloseTo(12, 12);
  });

  test("without weights leave those of the tasks", async () => {
    const union = await unionOf([{ path: index("a", tasksOf("a/b", 2, { weight: 5 })) }]);
    expect(weighted(union.tasks, union)).toEqual(union.tasks);
  });
});

describe("solve rates", () => {
  test("come from rows of tasks, rows of trials, and reports", async () => {
    const rows = [
      { task: "a", resolved: 1, attempts: 4 },
      { instance_id: "B", solve_rate: 0.75 },
      { task: "c", resolved: true },
      { task: "c", resolved: false },
      { task: "d", reward: 0 },
      { tasks: [{ id: "e", resolved: 0, attempts: 2 }] },
    ];
    const rates = await readSolveRates(
      file("rates.jsonl", rows.map((row) => `${JSON.stringify(row)}\n`).join("")),
    );
    expect([...rates]).toEqual([
      ["a", 0.25],
      ["b", 0.75],
      ["c", 0.5],
      ["d", 0],
      ["e", 0],
    ]);
    const [first, second, third] = withSolveRates(
      [task("A"), task("x", { instance: "b" }), task("y")],
      rates,
    );
    expect([first?.solveRate, second?.solveRate, third?.solveRate]).toEqual([0.25, 0.75, undefined]);
  });

  test.each([
    ["no name", { resolved: 1, attempts: 2 }, "task is absent"],
    [
      "more resolved than tried",
      { task: "a", resolved: 3, attempts: 2 },
      "solve_rate is absent or out of range",
    ],
    ["a rate above one", { task: "a", solve_rate: 1.5 }, "solve_rate is absent or out of range"],
    ["a task that is none", { tasks: [1] }, "rates.json:1 tasks[0]: task is no object"],
  ])("with %s are refused", async (_, row, message) => {
    const path = file("rates.json", JSON.stringify(row));
    await expect(readSolveRates(path)).rejects.toThrow(message);
    await expect(readSolveRates(path)).rejects.toThrow(MortiseError);
  });
});

test("exclusions are names, one a line, with remarks", () => {
  const path = file("out.txt", "# evaluation\nDjango/Django # all of it\r\n\nsympy__sympy-1\n  a#b  \n");
  expect([...readExclusions(path)]).toEqual(["django/django", "sympy__sympy-1", "a#b"]);
});

describe("a proof of disjointness", () => {
  const own = [...tasksOf("a/b", 2), ...tasksOf("c/d", 1, { baseCommit: "abc" })];

  test("says what was compared, and projects that may be forks", () => {
    const proof = proveDisjoint(own, tasksOf("fork/b", 3), "held-out", "repository");
    expect(proof).toMatchObject({
      against: "held-out",
      tasks: 3,
      otherTasks: 3,
      repositories: 2,
      otherRepositories: 1,
      sameNames: ["a/b and fork/b"],
    });
    const shuffled = proveDisjoint(own.toReversed(), tasksOf("fork/b", 3), "held-out", "repository");
    expect(shuffled.digest).toBe(proof.digest);
    expect(proveDisjoint(own.slice(1), tasksOf("fork/b", 3), "x", "repository").digest).not.toBe(
      proof.digest,
    );
  });

  test.each<[string, IndexedTask[], string]>([
    ["a repository", [task("z", { repository: "A/B" })], "1 repositories are in both: a/b."],
    ["an instance", [task("A__B-0", { repository: "z/z" })], "1 instances are in both: a__b-0."],
    [
      "a state of a repository",
      [task("z", { repository: "c/d", baseCommit: "ABC" })],
      "1 states of repositories are in both: c/d@abc.",
    ],
    [
      "a task without repository",
      [{ ...task("z"), repository: undefined as never }],
      "1 tasks of it do not say their repository, first z.",
    ],
    ["nothing", [], "it holds no tasks, so nothing is proven."],
  ])("fails for %s", (_, others, message) => {
    expect(() => proveDisjoint(own, others, "held-out", "repository")).toThrow(`held-out: ${message}`);
  });

  test("names the first ten", () => {
    const act = () => proveDisjoint(tasksOf("a/b", 12), tasksOf("a/b", 12), "held-out", "instance");
    expect(act).toThrow(/12 instances are in both: a__b-0, .* and 2 more\./);
  });

  test("of instances lets repositories be common", () => {
    const others = [task("z", { repository: "a/b" })];
    expect(proveDisjoint(own, others, "held-out", "instance")).toMatchObject({ level: "instance" });
  });

  test("reads a data set's own rows, and knows the project behind a mirror", async () => {
    const rows = [
      { instance_id: "a__b-9", repo: "a/b", base_commit: "abc", patch: "…" },
      { instance_id: "s.1", repo: "swesmith/c__d.1234567" },
    ];
    const path = file("eval.jsonl", rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    expect(await readIdentities(path)).toEqual([
      { instance: "a__b-9", repository: "a/b", baseCommit: "abc" },
      { instance: "s.1", repository: "c/d" },
    ]);
    expect(await readIdentities(index("held-out", own))).toMatchObject(
      own.map(({ instance }) => ({ instance })),
    );
  });
});
