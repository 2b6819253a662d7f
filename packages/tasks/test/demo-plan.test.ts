import { createRequire } from "node:module";
import { describe, expect, test } from "vitest";
import { readLibrary } from "../src/demo/library.js";
import { mutationsOf } from "../src/demo/mutations.js";
import { renameLocals, renamingsOf } from "../src/demo/surfaces.js";
import { compact, type DemoTask, demoFamily, planDemoTasks } from "../src/index.js";

const require = createRequire(import.meta.url);
const { runCases } = require("../demo/run.cjs");
const mini = require("../../../harnesses/mini/mini.cjs");

const { train, heldOut } = planDemoTasks({ seed: 7 });
const library = readLibrary();

/** Names of the hidden tests that fail when a file of the library has this text. */
function failing(task: DemoTask, text: string): string[] {
  const results = runCases({ ...library, [task.file]: text }, { entry: task.file, cases: task.cases });
  return results
    .filter((r: { status: string }) => r.status === "failed")
    .map((r: { name: string }) => r.name);
}

describe("the plan", () => {
  test("is large enough, with every prompt once and held-out prompts never trained", () => {
    expect(train.length).toBe(768);
    expect(heldOut.length).toBe(128);
    const prompts = [...train, ...heldOut].map((task) => task.prompt);
    expect(new Set(prompts).size).toBe(prompts.length);
    expect(new Set([...train, ...heldOut].map((task) => task.id)).size).toBe(prompts.length);
    expect(train.every((task) => task.split === "train")).toBe(true);
    expect(heldOut.every((task) => task.split === "heldout")).toBe(true);
  });

  test("depends on the seed and on nothing else", () => {
    const ids = (tasks: readonly DemoTask[]) => tasks.map((task) => task.id);
    const again = planDemoTasks({ seed: 7 });
    expect(again).toEqual({ train, heldOut });
    expect(ids(planDemoTasks({ seed: 8 }).heldOut)).not.toEqual(ids(heldOut));
  });

  test("asks held-out tasks of every kind of function in the proportion it trains them", () => {
    const share = (tasks: readonly DemoTask[], name: string) =>
      tasks.filter((task) => task.function === name).length / tasks.length;
    for (const name of ["sum", "product", "countAbove", "countBelow"]) {
      expect(share(train, name)).toBeGreaterThan(0.1);
      expect(Math.abs(share(train, name) - share(heldOut, name))).toBeLessThan(0.05);
    }
  });

  test("holds out no context that is not trained", () => {
    const trained = new Set(train.map((task) => task.context));
    expect(heldOut.filter((task) => !trained.has(task.context))).toEqual([]);
  });

  test("refuses more tasks than the family has", () => {
    expect(() => planDemoTasks({ seed: 1, train: 5000 })).toThrow("distinct tasks");
    expect(() => planDemoTasks({ seed: 1, train: 0 })).toThrow("train");
  });
});

describe("every task of the family", () => {
  const family = demoFamily();
  const oneOfEach = [...new Map(family.map((task) => [task.context, task])).values()];

  test("is shown by the mini harness exactly as planned", () => {
    for (const task of family) {
      const range = mini.locateFunction(task.buggyFile, task.function);
      const shown = mini.viewOf(task.buggyFile.slice(range.start, range.end)).text;
      expect(`# ${task.sentence}\n${shown}`).toBe(task.prompt);
    }
  });

  test("is repaired by its gold edit, which is unambiguous", () => {
    for (const task of family) {
      const [, shown] = task.prompt.split("\n") as [string, string];
      expect(shown.split(task.gold.old).length, task.id).toBe(2);
      const range = mini.locateFunction(task.goldFile, task.function);
      const repaired = shown.replace(task.gold.old, () => task.gold.new);
      expect(repaired, task.id).toBe(compact(task.goldFile.slice(range.start, range.end)));
    }
  });

  test("fails the hidden tests it says, and the gold file none", () => {
    expect(oneOfEach.length).toBeGreaterThan(20);
    for (const task of oneOfEach) {
      expect(failing(task, task.buggyFile), task.id).toEqual(task.failToPass);
      expect(task.failToPass.length, task.id).toBeGreaterThan(0);
      expect(failing(task, task.goldFile), task.id).toEqual([]);
    }
  });

  test("stays unrepaired under each of its wrong edits", () => {
    for (const task of oneOfEach) {
      expect(task.wrongEdits.length, task.id).toBeGreaterThan(2);
      const range = mini.locateFunction(task.buggyFile, task.function);
      for (const edit of task.wrongEdits) {
        const body = mini
          .viewOf(task.buggyFile.slice(range.start, range.end))
          .text.replace(edit.old, () => edit.new);
        const text = task.buggyFile.slice(0, range.start) + body + task.buggyFile.slice(range.end);
        expect(failing(task, text), `${task.id}: ${edit.old} => ${edit.new}`).not.toEqual([]);
      }
    }
  });

  test("has as many wrong edits as every other surface of its context", () => {
    for (const first of oneOfEach) {
      const others = family.filter((task) => task.context === first.context);
      expect(new Set(others.map((task) => task.wrongEdits.length))).toEqual(
        new Set([first.wrongEdits.length]),
      );
    }
  });
});

describe("mutations", () => {
  test("cover the kinds of bug, at one expression each", () => {
    const source = "function f(xs, lim) { let s = 0; for (const el of xs) if (el > lim) s += el; return s; }";
    expect(mutationsOf(source).map((m) => `${m.kind}: ${m.before} -> ${m.after}`)).toEqual([
      "initial-value: s = 0 -> s = 1",
      "comparison-flip: el > lim -> el < lim",
      "comparison-boundary: el > lim -> el >= lim",
      "comparison-equality: el > lim -> el == lim",
      "wrong-variable: el > lim -> el > s",
      "operator-swap: s += el -> s -= el",
      "operator-swap: s += el -> s *= el",
      "dropped-accumulation: s += el -> s = el",
      "wrong-variable: s += el -> s += lim",
      "wrong-variable: s += el -> s += s",
    ]);
  });

  test("keep their order under renaming", () => {
    const source = "function f(xs) { let s = 0; for (const el of xs) s += el; return s; }";
    for (const renaming of renamingsOf(source)) {
      const kinds = (text: string) => mutationsOf(text).map((mutation) => mutation.kind);
      expect(kinds(renameLocals(source, renaming))).toEqual(kinds(source));
    }
  });
});
