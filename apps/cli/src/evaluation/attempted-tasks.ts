/**
 * Owns which tasks an evaluation attempts: those of a directory or an index, or of the site, each of them where the site's
 * services will look for it. Writes their index for the run. Does not choose by difficulty (`mortise tasks index`).
 */
import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { loadIndexedTask, readTaskIndex, type TaskIndexEntry, writeTaskIndex } from "@mortise/tasks";
import { chooseTasks } from "../site/init/tasks.js";
import { SPLIT } from "./run-file.js";

export interface AttemptedTasks {
  /** In the order they are attempted. */
  readonly entries: readonly TaskIndexEntry[];
  /** SHA-256 (hex) over ids and digests, in this order. */
  readonly digest: string;
}

/**
 * @param given directory or index; the site's own index when undefined
 * @param directory the site's directory of tasks
 * @throws MORTISE_TASK_* naming a task that is not there, or is another than was given
 */
export async function attemptedTasks(
  given: string | undefined,
  split: string | undefined,
  directory: string,
): Promise<AttemptedTasks> {
  const all =
    given === undefined
      ? readTaskIndex(directory)
      : (await chooseTasks({ given, heldOut: 0, linked: directory })).entries;
  const entries = split === undefined ? all : all.filter((entry) => entry.split === split);
  if (entries.length === 0) throw noTask(given ?? directory, split, all);
  for (const entry of entries) assertThere(directory, entry);
  const text = entries.map(({ id, digest }) => `${id} ${digest}\n`).join("");
  return { entries, digest: createHash("sha256").update(text).digest("hex") };
}

/** The index the run draws from. */
export function writeAttempted(index: string, { entries }: AttemptedTasks): void {
  mkdirSync(index, { recursive: true, mode: 0o700 });
  writeTaskIndex(
    index,
    entries.map(({ id, digest }) => ({ id, digest, split: SPLIT })),
  );
}

function assertThere(directory: string, entry: TaskIndexEntry): void {
  try {
    loadIndexedTask(directory, entry);
  } catch (cause) {
    if (!(cause instanceof MortiseError)) throw cause;
    throw new MortiseError({
      code: cause.code,
      message: `--tasks: ${entry.id} is not what the site has at ${join(directory, entry.id)}: ${cause.message}`,
      fix: "Put the task into the site's directory of tasks, or leave --site away: the run then has a site of its own.",
      detail: { field: "--tasks" },
      cause,
    });
  }
}

function noTask(place: string, split: string | undefined, all: readonly TaskIndexEntry[]): MortiseError {
  const splits = [...new Set(all.map((entry) => entry.split))].sort().join(", ");
  return new MortiseError({
    code: "MORTISE_TASK_UNKNOWN",
    message: `${place} has no task${split === undefined ? "" : ` in the split ${split}`}.`,
    fix: splits === "" ? "Name a directory or an index with tasks." : `Use --split with one of: ${splits}.`,
    detail: { field: split === undefined ? "--tasks" : "--split" },
  });
}
