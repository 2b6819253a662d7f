/**
 * Owns the tasks this verifier has read: each directory is loaded and checked against its digest once.
 * Does not hold their files in memory.
 */
import { join } from "node:path";
import { MortiseError, subjectToken, type TaskRef } from "@mortise/contracts";
import { loadTask, type Task, taskDigest } from "@mortise/tasks";

export class TaskShelf {
  readonly #directory: string;
  readonly #tasks = new Map<string, Task>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @throws MORTISE_TASK_DIGEST when the directory is not the one the reference was made from */
  get(ref: TaskRef): Task {
    const key = `${ref.id}@${ref.digest}`;
    const known = this.#tasks.get(key);
    if (known !== undefined) return known;
    const task = loadTask(join(this.#directory, subjectToken("task.id", ref.id)));
    const digest = taskDigest(task);
    if (digest !== ref.digest)
      throw new MortiseError({
        code: "MORTISE_TASK_DIGEST",
        message: `${ref.id} has digest ${digest}, the request names ${ref.digest}`,
        detail: { task: ref.id },
      });
    this.#tasks.set(key, task);
    return task;
  }
}
