/**
 * Owns the A2A view of invocations that ran: bounded, and without what a caller sent, which holds a token (N2).
 * Tasks that have not ended never go.
 */
import { type Task, TaskState } from "@a2a-js/sdk";
import { InMemoryTaskStore, type ServerCallContext, type TaskStore } from "@a2a-js/sdk/server";

const ENDED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);

export class BoundedTaskStore implements TaskStore {
  readonly #maxEnded: number;
  /** By id, the least recently changed first. */
  readonly #tasks = new Map<string, Task>();

  constructor(maxEnded: number) {
    this.#maxEnded = maxEnded;
  }

  async save(task: Task): Promise<void> {
    this.#tasks.delete(task.id);
    this.#tasks.set(task.id, structuredClone({ ...task, history: [] }));
    const ended = [...this.#tasks.values()].filter((one) => ENDED.has(stateOf(one)));
    for (const { id } of ended.slice(0, Math.max(0, ended.length - this.#maxEnded))) this.#tasks.delete(id);
  }

  async load(id: string): Promise<Task | undefined> {
    return structuredClone(this.#tasks.get(id));
  }

  /** Filters and pages are the library's own. */

  async list(
    params: Parameters<TaskStore["list"]>[0],
    context: ServerCallContext,
  ): ReturnType<TaskStore["list"]> {
    const all = new InMemoryTaskStore();
    for (const task of this.#tasks.values()) await all.save(task, context);
    return all.list(params, context);
  }
}

function stateOf({ status }: Task): TaskState {
  return status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
}
