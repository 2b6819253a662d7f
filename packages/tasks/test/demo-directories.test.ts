import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readLibrary } from "../src/demo/library.js";
import { demoTaskFiles } from "../src/demo/task-directory.js";
import {
  demoFamily,
  digestOfFiles,
  executeInProcess,
  filesBelow,
  generateDemoTasks,
  loadTask,
  readTaskIndex,
  readValidationRecord,
  type Task,
  taskDigest,
  validateTask,
} from "../src/index.js";

const scratch = mkdtempSync(join(tmpdir(), "mortise-demo-"));
const directory = join(scratch, "tasks");
const generated = generateDemoTasks(directory, { seed: 3, train: 8, heldOut: 4 });
const load = (id: string) => loadTask(join(directory, id));
const tasks = generated.index.map((entry) => load(entry.id));

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("generated directories", () => {
  test("load without a warning and match the index", () => {
    expect(readTaskIndex(directory)).toEqual(generated.index);
    expect(generated.index.map((entry) => entry.split)).toEqual([
      ...Array(8).fill("train"),
      ...Array(4).fill("heldout"),
    ]);
    for (const task of tasks) {
      expect(task.warnings).toEqual([]);
      expect(taskDigest(task)).toBe(generated.index.find((entry) => entry.id === task.id)?.digest);
    }
  });

  test("hold the whole library, and nothing of tests, solution or history, where the agent can look", () => {
    for (const task of tasks) {
      const repository = task.environment.repository as string;
      expect(filesBelow(repository)).toEqual(Object.keys(readLibrary()));
      const visible = filesBelow(repository)
        .map((path) => readFileSync(join(repository, path), "utf8"))
        .join("\n");
      for (const name of task.tests.expected?.failToPass ?? []) expect(visible).not.toContain(name);
      expect(visible).not.toContain(
        generated.train.concat(generated.heldOut).find((t) => t.id === task.id)?.goldFile,
      );
    }
  });

  test("have a patch and a script that make the same repair", () => {
    for (const task of tasks) {
      const byPatch = join(scratch, `${task.id}-patch`);
      const byScript = join(scratch, `${task.id}-script`);
      for (const copy of [byPatch, byScript]) {
        cpSync(task.environment.repository as string, copy, { recursive: true });
      }
      const applied = spawnSync("git", ["apply", task.solution?.patch as string], {
        cwd: byPatch,
        encoding: "utf8",
      });
      expect(applied.stderr).toBe("");
      spawnSync("sh", [task.solution?.script as string], { cwd: byScript });
      const file = String(task.metadata.file);
      expect(readFileSync(join(byPatch, file), "utf8")).toBe(readFileSync(join(byScript, file), "utf8"));
      expect(taskDigest(byPatch)).not.toBe(taskDigest(task.environment.repository as string));
    }
  });

  test("are written completely or not at all", () => {
    expect(() => generateDemoTasks(directory, { seed: 3, train: 1, heldOut: 1 })).toThrow(
      "not an empty directory",
    );
    expect(() => generateDemoTasks(join(scratch, "none"), { seed: 3, train: 9999 })).toThrow(
      "distinct tasks",
    );
    expect(existsSync(join(scratch, "none"))).toBe(false);
    expect(readdirSync(scratch).filter((name) => name.includes("partial"))).toEqual([]);
  });
});

describe("validation", () => {
  test("accepts a generated task by real runs", async () => {
    const found = await validateTask(tasks[0] as Task, executeInProcess);
    expect(found).toMatchObject({
      isValid: true,
      gold: { resolved: 3, attempts: 3 },
      noop: { resolved: false },
    });
    expect(found.noop.failed).toEqual(tasks[0]?.tests.expected?.failToPass);
  });

  test("finds a gold solution that does not repair", async () => {
    const task = copyOf(tasks[1] as Task, "bad-gold");
    writeFileSync(task.solution?.script as string, "exit 0\n");
    const found = await validateTask(task, executeInProcess);
    expect(found).toMatchObject({ isValid: false, gold: { resolved: 0, attempts: 3 } });
  });

  test("finds a task that needs no repair", async () => {
    const task = copyOf(tasks[1] as Task, "no-bug");
    const repository = task.environment.repository as string;
    spawnSync("sh", [task.solution?.script as string], { cwd: repository });
    const found = await validateTask(loadTask(task.directory), executeInProcess);
    expect(found.problems).toContain("doing nothing resolves it.");
  });

  test("finds an expected test that does not fail without the repair", async () => {
    const task = copyOf(tasks[1] as Task, "wrong-list");
    const path = join(task.tests.directory, "expected.json");
    const lists = JSON.parse(readFileSync(path, "utf8"));
    const moved = lists.passToPass.pop();
    writeFileSync(path, JSON.stringify({ ...lists, failToPass: [...lists.failToPass, moved] }));
    const found = await validateTask(loadTask(task.directory), executeInProcess);
    expect(found.problems).toEqual([`"${moved}" passes unrepaired.`]);
  });

  test("says so when the solution is missing or the tests do not run", async () => {
    const task = copyOf(tasks[1] as Task, "broken");
    rmSync(join(task.directory, "solution"), { recursive: true });
    writeFileSync(task.tests.script, "no-such-command\n");
    const found = await validateTask(loadTask(task.directory), executeInProcess);
    expect(found.gold.attempts).toBe(0);
    expect(found.problems.join(" ")).toContain("no-such-command");
  });

  test("is recorded for the whole family as it is now", () => {
    const library = readLibrary();
    const recorded = new Map(readValidationRecord().tasks.map((task) => [task.id, task]));
    const family = demoFamily();
    expect(recorded.size).toBe(family.length);
    for (const task of family) {
      const digest = digestOfFiles(demoTaskFiles(task, library));
      expect(recorded.get(task.id)).toEqual({ id: task.id, digest, gold: "3/3", noop: "fails" });
    }
  });
});

function copyOf(task: Task, name: string): Task {
  const copy = join(scratch, name);
  cpSync(task.directory, copy, { recursive: true });
  return loadTask(copy);
}
