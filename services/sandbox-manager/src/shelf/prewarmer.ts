/**
 * Owns making ready what will be launched next: the images, trees and templates of the tasks a scheduler has named, in
 * its order, one run after the other. A convenience: whatever is not ready when its trial comes is made then.
 *
 * W1  Only the latest word of a run counts: what it no longer names is not begun.
 * W2  One thing at a time: trials that wait now are never held up by more than one that may come later.
 */
import type { PrewarmRequest, TaskRef } from "@mortise/contracts";
import { fromUnknown, type Log } from "@mortise/kernel";
import type { RemoteHarnesses } from "../remote/remote-harnesses.js";
import type { HarnessShelf } from "./harnesses.js";
import type { TaskShelf } from "./tasks.js";
import type { TemplateShelf } from "./templates.js";

export interface PrewarmerOptions {
  readonly tasks: Pick<TaskShelf, "get">;
  readonly templates: Pick<TemplateShelf, "lease">;
  readonly harnesses: Pick<HarnessShelf, "get">;
  readonly remotes: Pick<RemoteHarnesses, "get">;
  readonly log: Log;
}

/** Of one run. A scheduler that names more is not believed. */
const MAX_TASKS = 256;

export class Prewarmer {
  readonly #options: PrewarmerOptions;
  readonly #wanted = new Map<string, { readonly harness: string; tasks: TaskRef[] }>();
  #working: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: PrewarmerOptions) {
    this.#options = options;
  }

  /** Takes the word of a run (W1); returns how many tasks are in line for it. */
  want({ run, harness, tasks }: PrewarmRequest): number {
    if (this.#isStopped) return 0;
    this.#wanted.delete(run);
    if (tasks.length > 0) this.#wanted.set(run, { harness, tasks: tasks.slice(0, MAX_TASKS) });
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
    return Math.min(tasks.length, MAX_TASKS);
  }

  /** Nothing more is begun. */
  stop(): void {
    this.#isStopped = true;
    this.#wanted.clear();
  }

  /** Resolves when nothing is being made. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = this.#next()) await this.#prepare(next);
  }

  /** The next task of the run whose turn it is. */
  #next(): { run: string; harness: string; task: TaskRef } | undefined {
    const first = this.#wanted.entries().next().value;
    if (first === undefined) return undefined;
    const [run, { harness, tasks }] = first;
    const task = tasks.shift();
    this.#wanted.delete(run);
    if (tasks.length > 0) this.#wanted.set(run, { harness, tasks });
    return task === undefined ? this.#next() : { run, harness, task };
  }

  async #prepare({ run, harness, task }: { run: string; harness: string; task: TaskRef }): Promise<void> {
    const { tasks, templates, harnesses, remotes, log } = this.#options;
    const since = performance.now();
    try {
      // Of what runs elsewhere only the task is needed here, to read and grade its change.
      if (remotes.get(harness) !== undefined) await tasks.get(task);
      else {
        await harnesses.get(harness);
        const lease = await templates.lease(await tasks.get(task), { run });
        lease.release();
      }
      log.debug({ event: "task.prewarmed", run, task: task.id, ms: Math.round(performance.now() - since) });
    } catch (error) {
      // Its own trials will say so where it counts.
      const known = fromUnknown(error, "MORTISE_SANDBOX_SETUP", `task ${task.id}`);
      log.warn({ event: "task.not-prewarmed", run, task: task.id, err: known });
    }
  }
}
