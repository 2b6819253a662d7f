/**
 * Owns index.json, the list of tasks a scheduler draws from: id, digest and split, in drawing order.
 * Does not own the tasks themselves.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { z } from "zod";
import { taskDigest } from "./digest.js";
import { parseJsonFile } from "./expected-tests.js";
import { listTaskIds, loadTask, TASK_ID, type Task } from "./load-task.js";

const Entry = z.strictObject({
  id: z.string().regex(TASK_ID),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  split: z.string().regex(/^[a-z0-9_-]+$/),
});
const IndexFile = z
  .strictObject({ schema: z.literal(1), tasks: z.array(Entry) })
  .refine((file) => new Set(file.tasks.map((entry) => entry.id)).size === file.tasks.length, {
    message: "names a task twice",
    path: ["tasks"],
  });

export type TaskIndexEntry = z.infer<typeof Entry>;

/** Reads `<directory>/index.json`. Throws MORTISE_TASK_INVALID when malformed, MORTISE_TASK_UNKNOWN when absent. */
export function readTaskIndex(directory: string): TaskIndexEntry[] {
  const path = join(directory, "index.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${path} cannot be read.`,
      fix: "Name a directory that `mortise tasks generate` wrote, or write index.json there: {schema: 1, tasks: [{id, digest, split}]}.",
      cause,
      detail: { path },
    });
  }
  return parseJsonFile(path, text, IndexFile).tasks;
}

/** Writes `<directory>/index.json` in one rename, so a reader sees the old or the new one. */
export function writeTaskIndex(directory: string, entries: readonly TaskIndexEntry[]): void {
  const path = join(directory, "index.json");
  const lines = entries.map((entry) => `    ${JSON.stringify(entry)}`).join(",\n");
  writeFileSync(`${path}.partial`, `{\n  "schema": 1,\n  "tasks": [\n${lines}\n  ]\n}\n`);
  renameSync(`${path}.partial`, path);
}

/** Loads every task directory of a folder and gives its entries, all in one split. Throws on the first bad one. */
export function indexTasks(directory: string, split: string): TaskIndexEntry[] {
  return listTaskIds(directory).map((id) => {
    const task = loadTask(join(directory, id));
    return { id, digest: taskDigest(task), split };
  });
}

/** Loads a task and checks that it still is what was indexed. Throws MORTISE_TASK_UNKNOWN or MORTISE_TASK_DIGEST. */
export function loadIndexedTask(directory: string, reference: { id: string; digest: string }): Task {
  const path = join(directory, reference.id);
  if (!TASK_ID.test(reference.id) || !existsSync(join(path, "task.toml"))) {
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${path} is not a task directory.`,
      detail: { path },
    });
  }
  const found = taskDigest(path);
  if (found !== reference.digest) {
    throw new MortiseError({
      code: "MORTISE_TASK_DIGEST",
      message: `${path} has digest ${found}, expected ${reference.digest}.`,
      detail: { path, found, expected: reference.digest },
    });
  }
  return loadTask(path);
}
