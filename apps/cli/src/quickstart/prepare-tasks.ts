/**
 * Owns the demo tasks of a quick start: generated once per seed, checked against the committed validation
 * record, and some of them run again in the sandbox that will be used.
 * Does not own what the tasks are (packages/tasks).
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
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
  const { train } = existsSync(join(directory, "index.json"))
    ? planDemoTasks(options)
    : await generate(directory, options);
  const index = readTaskIndex(directory);
  for (const entry of index) assertValidated(directory, entry, validated.get(entry.id));
  return { directory, train, index };
}

async function generate(directory: string, options: { seed: number; train: number; heldOut: number }) {
  await mkdir(dirname(directory), { recursive: true });
  return generateDemoTasks(directory, options);
}

/** The directory itself is digested, not its index: it has been on disk since somebody wrote it. */
function assertValidated(directory: string, entry: TaskIndexEntry, validated: string | undefined): void {
  const path = join(directory, entry.id);
  const found = taskDigest(path);
  if (found === entry.digest && found === validated) return;
  throw new MortiseError({
    code: "MORTISE_TASK_DIGEST",
    message: `${path} has digest ${found}; validated was ${validated ?? "no such task"}.`,
    fix: `Remove ${directory} and start again; if the generator itself changed, validate the family anew.`,
    detail: { field: entry.id, path },
  });
}
