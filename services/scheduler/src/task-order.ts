/**
 * Owns which task comes when: the training order as a pure function of seed and ordinal, and the plan of an
 * evaluation. Because nothing here has state, a restarted scheduler draws the same tasks again.
 * Does not read the task index from disk.
 */
import { createHash } from "node:crypto";

/** A task by id and digest (hex), as the task index names it. */
export interface IndexedTask {
  readonly id: string;
  readonly digest: string;
}

export interface DrawnTask {
  readonly task: IndexedTask;
  /** Passes over the index completed before this draw. */
  readonly epoch: number;
}

/** Draws tasks epoch by epoch; each epoch is its own shuffle of all tasks. */
export class TaskOrder {
  readonly #tasks: readonly IndexedTask[];
  readonly #seed: number;
  readonly #shuffles = new Map<number, readonly IndexedTask[]>();

  constructor(tasks: readonly IndexedTask[], seed: number) {
    this.#tasks = tasks;
    this.#seed = seed;
  }

  /** The task of the group started as number `ordinal`, from 0. */
  at(ordinal: number): DrawnTask {
    const epoch = Math.floor(ordinal / this.#tasks.length);
    return { task: this.#shuffled(epoch)[ordinal % this.#tasks.length]!, epoch };
  }

  /** Sorting by a hash of (seed, epoch, id) shuffles without depending on the order of the index file. */
  #shuffled(epoch: number): readonly IndexedTask[] {
    let order = this.#shuffles.get(epoch);
    if (order === undefined) {
      const keyed = this.#tasks.map((task) => ({ task, key: shuffleKey(this.#seed, epoch, task.id) }));
      order = keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ task }) => task);
      this.#shuffles.set(epoch, order);
    }
    return order;
  }
}

function shuffleKey(seed: number, epoch: number, id: string): string {
  return createHash("sha256").update(`${seed}/${epoch}/${id}`).digest("hex");
}

export interface PlannedAttempt {
  readonly task: IndexedTask;
  readonly taskIndex: number;
  /** Which attempt at this task, from 0. */
  readonly attempt: number;
}

/**
 * Exactly `attempts` attempts spread evenly: attempt j goes to task ⌊j·N/attempts⌋, so that counts differ by at
 * most one and fewer attempts than tasks are strided over the whole index.
 */
export function evaluationPlan(tasks: readonly IndexedTask[], attempts: number): PlannedAttempt[] {
  const given = new Map<number, number>();
  return Array.from({ length: tasks.length === 0 ? 0 : attempts }, (_, j) => {
    const taskIndex = Math.floor((j * tasks.length) / attempts);
    const attempt = given.get(taskIndex) ?? 0;
    given.set(taskIndex, attempt + 1);
    return { task: tasks[taskIndex]!, taskIndex, attempt };
  });
}
