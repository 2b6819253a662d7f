/**
 * Owns the demo tasks of a quick start: generated once per seed, checked against the committed validation
 * record, and some of them run again in the sandbox that will be used.
 * Does not own what the tasks are (packages/tasks).
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import {
  type DemoTask,
  generateDemoTasks,
  planDemoTasks,
  readTaskIndex,
  readValidationRecord,
  type TaskIndexEntry,
  taskDigest,
} from "@mortise/tasks";
import { HELD_OUT_TASKS, TRAIN_TASKS } from "./recipe.js";

export interface DemoTasks {
  readonly directory: string;
  readonly train: readonly DemoTask[];
  readonly index: readonly TaskIndexEntry[];
}

/** Generates or finds the tasks of a seed. @throws MORTISE_TASK_DIGEST when one is not what was validated. */
export async function prepareTasks(tasksRoot: string, seed: number): Promise<DemoTasks> {
  const options = { seed, train: TRAIN_TASKS, heldOut: HELD_OUT_TASKS };
  const record = readValidationRecord();
  const validated = new Map(record.tasks.map(({ id, digest }) => [id, digest]));
  const key = createHash("sha256")
    .update(JSON.stringify([options, record]))
    .digest("hex")
    .slice(0, 16);
  const directory = join(tasksRoot, key);
  if (!isAsValidated(directory, validated)) {
    await rm(directory, { recursive: true, force: true });
    await mkdir(tasksRoot, { recursive: true });
    generateDemoTasks(directory, options);
  }
  const index = readTaskIndex(directory);
  for (const entry of index) assertValidated(directory, entry, validated.get(entry.id));
  return { directory, train: planDemoTasks(options).train, index };
}

/** The directories themselves are digested, not their index: they have been on disk since somebody wrote them. */
function isAsValidated(directory: string, validated: ReadonlyMap<string, string>): boolean {
  if (!existsSync(join(directory, "index.json"))) return false;
  return readTaskIndex(directory).every(({ id }) => taskDigest(join(directory, id)) === validated.get(id));
}

function assertValidated(directory: string, entry: TaskIndexEntry, validated: string | undefined): void {
  const path = join(directory, entry.id);
  const found = taskDigest(path);
  if (found === entry.digest && found === validated) return;
  throw new MortiseError({
    code: "MORTISE_TASK_DIGEST",
    message: `${path} has digest ${found}; validated was ${validated ?? "no such task"}.`,
    fix: "The generator gives another task than the one that was validated: validate the family anew.",
    detail: { field: entry.id, path },
  });
}
