/** Owns finding the task directory of an instance of a data set. Does not read tasks further. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { listTaskIds } from "@mortise/tasks";

/** The directory of each instance; a task that was not imported goes by its own name. */
export class Instances {
  readonly #root: string;
  #byInstance: ReadonlyMap<string, string> | undefined;

  constructor(root: string) {
    this.#root = resolve(root);
  }

  /** @throws MORTISE_TASK_UNKNOWN */
  directoryOf(instance: string): string {
    const own = join(this.#root, instance);
    // Whoever wrote the predictions names instances, not paths.
    const isName = dirname(own) === this.#root && basename(own) === instance;
    if (isName && existsSync(join(own, "task.toml"))) return own;
    this.#byInstance ??= this.#read();
    const id = this.#byInstance.get(instance);
    if (id !== undefined) return join(this.#root, id);
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${this.#root} has no task of the instance ${instance}.`,
      fix: "Import the instance first: mortise tasks import.",
      detail: { field: "instance_id", source: instance },
    });
  }

  #read(): Map<string, string> {
    return new Map(
      listTaskIds(this.#root).flatMap((id) => {
        const record = join(this.#root, id, "tests/config.json");
        if (!existsSync(record)) return [];
        const instance = instanceIn(record);
        return typeof instance === "string" ? [[instance, id] as const] : [];
      }),
    );
  }
}

/** A record that cannot be read is an error: its task would be called missing. */
function instanceIn(record: string): unknown {
  try {
    return (JSON.parse(readFileSync(record, "utf8")) as { instance_id?: unknown } | null)?.instance_id;
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_TASK_INVALID",
      message: `${record}: ${(cause as Error).message}`,
      fix: "Import the task again: mortise tasks import.",
      cause,
      detail: { source: record },
    });
  }
}
