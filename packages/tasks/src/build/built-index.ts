/**
 * Owns bringing the index of a directory up to tasks whose image was written into them: their digest and image, where
 * the index still had the digest of before. Does not change tasks.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readTaskIndex, writeTaskIndex } from "../harbor/task-index.js";
import { readIndex, writeIndex } from "../selection/index-files.js";
import type { BuildState } from "./build-state.js";

/** @returns names of tasks the index has with a digest that is neither of before nor of after: it is left as it is */
export async function indexBuilt(root: string, rows: readonly BuildState[]): Promise<string[]> {
  const built = new Map(rows.filter(({ state }) => state === "built").map((row) => [row.task, row]));
  const strange = new Set<string>();
  const renewed = <E extends { readonly id: string; readonly digest?: string }>(
    entry: E,
    image: boolean,
  ): E => {
    const row = built.get(entry.id);
    if (row === undefined || entry.digest === undefined || entry.digest === row.digestAfter) return entry;
    if (entry.digest === row.digestBefore)
      return { ...entry, digest: row.digestAfter, ...(image ? { image: row.image } : {}) };
    strange.add(entry.id);
    return entry;
  };
  const hasRows = existsSync(join(root, "index.jsonl"));
  if (hasRows) {
    const tasks = await readIndex(root);
    const after = tasks.map((task) => renewed(task, true));
    if (after.some((task, at) => task !== tasks[at])) writeIndex(root, after, "train");
  } else if (existsSync(join(root, "index.json"))) {
    const entries = readTaskIndex(root);
    const after = entries.map((entry) => renewed(entry, false));
    if (after.some((entry, at) => entry !== entries[at])) writeTaskIndex(root, after);
  }
  return [...strange].sort();
}
