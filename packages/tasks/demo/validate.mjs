/**
 * Owns making demo/validation.json: writes the whole demo family to a temporary directory, runs every task's
 * gold solution three times and its unrepaired repository once as real node processes, and records the result.
 * Run it after any change to the library, the mutations or the hidden tests: `node demo/validate.mjs`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import {
  DEMO_VALIDATION_PATH,
  demoFamily,
  executeInProcess,
  loadTask,
  validateTask,
  writeDemoTasks,
  writeValidationRecord,
} from "../dist/index.js";

const scratch = mkdtempSync(join(tmpdir(), "mortise-validate-"));
try {
  const directory = join(scratch, "tasks");
  const waiting = writeDemoTasks(directory, demoFamily());
  const tasks = [];
  const work = async () => {
    for (let entry = waiting.pop(); entry !== undefined; entry = waiting.pop()) {
      const found = await validateTask(loadTask(join(directory, entry.id)), executeInProcess);
      if (!found.isValid) throw new Error(`${entry.id}: ${found.problems.join(" ")}`);
      const gold = `${found.gold.resolved}/${found.gold.attempts}`;
      tasks.push({
        id: found.id,
        digest: found.digest,
        gold,
        noop: found.noop.resolved ? "resolves" : "fails",
      });
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  writeValidationRecord(DEMO_VALIDATION_PATH, {
    schema: 1,
    validatedOn: new Date().toISOString().slice(0, 10),
    executor: "process",
    node: process.version,
    tasks,
  });
  process.stdout.write(`${tasks.length} tasks validated\n`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
