/**
 * Owns joining several indexes into one: where each task lies, and how often the tasks of a source are drawn
 * against those of the others.
 */
import { dirname, relative, resolve, sep } from "node:path";
import { indexFile, readIndex } from "./index-files.js";
import type { IndexedTask } from "./indexed-task.js";

export interface TaskSource {
  readonly path: string;
  /** Share of draws against the other sources; absent: every task of every source counts the same. */
  readonly weight?: number;
}

export interface Union {
  /** In the order of the sources, paths absolute. */
  readonly tasks: readonly IndexedTask[];
  readonly sourceOf: ReadonlyMap<string, TaskSource>;
}

/** Reads all sources. Throws what `readIndex` throws. */
export async function unionOf(sources: readonly TaskSource[]): Promise<Union> {
  const tasks: IndexedTask[] = [];
  const sourceOf = new Map<string, TaskSource>();
  for (const source of sources) {
    const root = dirname(resolve(indexFile(source.path)));
    for (const task of await readIndex(source.path)) {
      const placed = { ...task, path: resolve(root, task.path ?? task.id) };
      tasks.push(placed);
      // Of repeated tasks the first stays, and so does its source.
      if (!sourceOf.has(placed.path)) sourceOf.set(placed.path, source);
    }
  }
  return { tasks, sourceOf };
}

/**
 * Weights by which each source is drawn as often as its weight says, however many of its tasks are left; within a
 * source the tasks keep their proportions. Without weights of sources nothing changes. The mean weight is 1.
 */
export function weighted(tasks: readonly IndexedTask[], { sourceOf }: Union): IndexedTask[] {
  const sources = new Set(tasks.map((task) => sourceOf.get(task.path!)!));
  if ([...sources].every(({ weight }) => weight === undefined)) return [...tasks];
  const own = (task: IndexedTask) => task.weight ?? 1;
  const totals = new Map<TaskSource, number>();
  for (const task of tasks) {
    const source = sourceOf.get(task.path!)!;
    totals.set(source, (totals.get(source) ?? 0) + own(task));
  }
  const share = [...sources].reduce((sum, { weight = 1 }) => sum + weight, 0);
  return tasks.map((task) => {
    const source = sourceOf.get(task.path!)!;
    const weight = (((source.weight ?? 1) / share) * own(task) * tasks.length) / totals.get(source)!;
    return { ...task, weight };
  });
}

/** The tasks with paths relative to the directory their index is written to, "/" separated. */
export function placedBelow(directory: string, tasks: readonly IndexedTask[]): IndexedTask[] {
  return tasks.map((task) => ({
    ...task,
    path: relative(resolve(directory), task.path!).split(sep).join("/"),
  }));
}
