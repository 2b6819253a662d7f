/** Owns made-up tasks of an index. */
import type { IndexedTask } from "../../src/selection/index.js";

export function task(id: string, fields: Partial<IndexedTask> = {}): IndexedTask {
  return {
    id,
    instance: id,
    prompt: [{ role: "user", content: "Repair it." }],
    repository: `${id.split("__")[0]}/${id.split("__").at(-1)!.replace(/-\d+$/, "")}`,
    other: { row: {}, rewardModel: {}, extraInfo: {} },
    ...fields,
  };
}

export function tasksOf(repository: string, count: number, fields: Partial<IndexedTask> = {}): IndexedTask[] {
  return Array.from({ length: count }, (_, i) =>
    task(`${repository.replace("/", "__")}-${i}`, { repository, ...fields }),
  );
}
