/** Owns what an import writes into the index of its directory. Does not write the files (selection/index-files.ts). */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readIndex } from "../selection/index-files.js";
import type { IndexedTask } from "../selection/indexed-task.js";
import { changedLines } from "./patch/mend-patch.js";
import type { TaskRecord } from "./record.js";

export function indexedTaskOf(record: TaskRecord, digest: string, split: string): IndexedTask {
  const { baseCommit, createdAt, image, difficulty } = record;
  return {
    id: record.id,
    instance: record.instance,
    prompt: [{ role: "user", content: record.statement }],
    dataset: record.dataset,
    repository: record.repository,
    language: record.language,
    ...(baseCommit === undefined ? {} : { baseCommit }),
    ...(createdAt === undefined ? {} : { createdAt }),
    digest,
    split,
    path: record.id,
    ...(image === undefined ? {} : { image }),
    ...(difficulty === undefined ? {} : { difficulty }),
    patchFiles: record.gold.files.length,
    patchLines: changedLines(record.gold),
    failToPass: record.failToPass.length,
    passToPass: record.passToPass.length,
    other: { row: {}, rewardModel: {}, extraInfo: {} },
  };
}

/** The tasks of this import and, of earlier ones into the same directory, those that are still there. By id. */
export async function mergedIndex(root: string, imported: readonly IndexedTask[]): Promise<IndexedTask[]> {
  const merged = new Map(imported.map((task) => [task.id, task]));
  const earlier = existsSync(join(root, "index.jsonl")) ? await readIndex(root) : [];
  for (const task of earlier)
    if (!merged.has(task.id) && existsSync(join(root, task.path ?? task.id, "task.toml")))
      merged.set(task.id, task);
  return [...merged.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
