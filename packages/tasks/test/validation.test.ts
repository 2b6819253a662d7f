/** What a validation finds of a task, with and without a network, and what is kept of it. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  canCloseNetwork,
  type Execute,
  type ExecutionResult,
  executeInProcess,
  executeWithoutNetwork,
  generateDemoTasks,
  listTaskIds,
  loadTask,
  readValidation,
  type Task,
  validateTask,
  writeQuarantine,
  writeValidation,
} from "../src/index.js";

let root: string;
let tasks: Task[];
beforeEach(() => {
  root = join(mkdtempSync(join(tmpdir(), "mortise-validation-")), "tasks");
  generateDemoTasks(root, { seed: 1, train: 2, heldOut: 1 });
  tasks = listTaskIds(root).map((id) => loadTask(join(root, id)));
});
afterEach(() => rmSync(join(root, ".."), { recursive: true, force: true }));

const passed: ExecutionResult = { outcome: "resolved", failed: [], isNetworkClosed: true };
const failing = (...failed: string[]): ExecutionResult => ({
  outcome: "unresolved",
  failed,
  isNetworkClosed: true,
});

/** Gold attempts end as given, one after the other; doing nothing fails what must fail. */
function executing(task: Task, results: readonly ExecutionResult[]): Execute {
  return async ({ solution, attempt }) =>
    solution === "gold" ? results[attempt - 1]! : failing(...task.tests.expected!.failToPass);
}

describe("of several gold attempts", () => {
  const validated = (results: readonly ExecutionResult[]) =>
    validateTask(tasks[0]!, executing(tasks[0]!, results), { goldAttempts: results.length });

  test("all that resolve make a task valid, and egress-free", async () => {
    expect(await validated([passed, passed, passed, passed])).toMatchObject({
      isValid: true,
      gold: { resolved: 4, attempts: 4 },
      flakeRate: 0,
      flakyTests: [],
      isEgressFree: true,
      problems: [],
    });
  });

  test("one that ends otherwise makes it flaky, and names the tests", async () => {
    expect(await validated([passed, failing("a", "b"), passed, failing("a")])).toMatchObject({
      isValid: false,
      flakeRate: 0.5,
      flakyTests: ["a", "b"],
      isEgressFree: false,
      problems: ["gold attempt 2 is unresolved (a, b).", "gold attempt 4 is unresolved (a)."],
    });
  });

  test("all that fail alike make it wrong, not flaky", async () => {
    expect(await validated([failing("a"), failing("a"), failing("a")])).toMatchObject({
      isValid: false,
      flakeRate: 0,
      flakyTests: [],
    });
  });

  test("runs with a network do not show that a task needs none", async () => {
    const open = { ...passed, isNetworkClosed: false };
    const found = await validated([open, open]);
    expect(found).toMatchObject({ isValid: true, isEgressFree: false });
  });

  test("time is that of the clock it is given", async () => {
    const slow = executing(tasks[0]!, [passed, passed, passed]);
    const timed = [10, 30, 20, 5].flatMap((ms) => [0, ms]);
    let total = 0;
    const found = await validateTask(tasks[0]!, slow, {
      now: () => {
        total += timed.shift() ?? 0;
        return total;
      },
    });
    expect(found.wallMs).toEqual({ median: 20, max: 30 });
  });
});

describe.skipIf(!canCloseNetwork())(
  `without a network${canCloseNetwork() ? "" : " (this host allows no network namespace)"}`,
  () => {
    test("a task that needs one is found, and one that does not is egress-free", async () => {
      const interfaces = "require('os').networkInterfaces()";
      const needy = join(root, "needs-a-network");
      cpSync(tasks[0]!.directory, needy, { recursive: true });
      const script = readFileSync(join(needy, "tests/test.sh"), "utf8").replace("exec node", "node");
      const probe = `node -e "process.exit(Object.keys(${interfaces}).some((name) => name !== 'lo') ? 0 : 9)" || exit 9\n`;
      writeFileSync(join(needy, "tests/test.sh"), script.replace("\n", `\n${probe}`));
      const found = await validateTask(loadTask(needy), executeWithoutNetwork);
      expect(found).toMatchObject({ isValid: false, isEgressFree: false, gold: { resolved: 0 } });
      expect(await validateTask(tasks[0]!, executeWithoutNetwork)).toMatchObject({
        isValid: true,
        isEgressFree: true,
      });
      const own = await validateTask(tasks[0]!, executeInProcess, { goldAttempts: 1 });
      expect(own).toMatchObject({ isValid: true, isEgressFree: false });
    });
  },
);

describe("what is kept", () => {
  const stored = async (task: Task, results: readonly ExecutionResult[]) =>
    writeValidation(root, "process", await validateTask(task, executing(task, results)), new Date(0));

  test("is read again until the task changes (V1)", async () => {
    const [task] = tasks;
    await stored(task!, [passed, passed, passed]);
    expect(readValidation(root, task!.id)).toMatchObject({
      executor: "process",
      validatedAt: "1970-01-01T00:00:00.000Z",
      validation: { id: task!.id, isValid: true },
    });
    writeFileSync(join(task!.directory, "instruction.md"), "Another.\n");
    expect(readValidation(root, task!.id)).toBeUndefined();
    expect(readValidation(root, tasks[1]!.id)).toBeUndefined();
  });

  test("a damaged file is named", async () => {
    await stored(tasks[0]!, [passed, passed, passed]);
    writeFileSync(join(root, "validation", `${tasks[0]!.id}.json`), '{"schema":2}');
    expect(() => readValidation(root, tasks[0]!.id)).toThrow(`${tasks[0]!.id}.json: schema: `);
  });

  test("the quarantine list names what is not to be used, and nothing that is gone or mended", async () => {
    for (const task of tasks) await stored(task, [passed, failing("a"), passed]);
    expect(writeQuarantine(root).map(({ id }) => id)).toEqual(tasks.map(({ id }) => id));
    const lines = () => readFileSync(join(root, "quarantine.txt"), "utf8").split("\n").slice(0, -1);
    expect(lines()[0]).toBe(`${tasks[0]!.id} # gold attempt 2 is unresolved (a).`);
    rmSync(tasks[0]!.directory, { recursive: true });
    await stored(tasks[1]!, [passed, passed, passed]);
    expect(writeQuarantine(root).map(({ id }) => id)).toEqual([tasks[2]!.id]);
    expect(lines()).toHaveLength(1);
    expect(existsSync(join(root, "quarantine.txt.partial"))).toBe(false);
  });
});
