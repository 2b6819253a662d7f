/**
 * Owns the tasks the suite is run on: each cheat has a task of its own, with the instruction that names it and a
 * repair that solves it. Does not know what cheats do.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demoFamily, taskDigest, writeDemoTasks, writeTaskIndex } from "@mortise/tasks";
import type { Cheat, Family } from "./cheats/cheat.js";

/** The split of the task index all of them are in. */
export const SPLIT = "train";

export interface TaskKind {
  /** Writes the task directory without an instruction. */
  readonly write: (directory: string) => void;
}

/** Writes one task a cheat, and their index. @returns the repairs, as scripts, by task */
export function writeTasks(
  root: string,
  cheats: readonly Cheat[],
  kinds: Readonly<Partial<Record<Family, TaskKind>>>,
): ReadonlyMap<string, string> {
  mkdirSync(root, { recursive: true });
  const repairs = new Map<string, string>();
  for (const { name, family } of cheats) {
    const directory = join(root, name);
    kinds[family]!.write(directory);
    writeFileSync(join(directory, "instruction.md"), name);
    repairs.set(name, readFileSync(join(directory, "solution/solve.sh"), "utf8"));
  }
  const entry = (id: string) => ({ id, digest: taskDigest(join(root, id)), split: SPLIT });
  writeTaskIndex(
    root,
    cheats.map(({ name }) => entry(name)),
  );
  return repairs;
}

/** A bundled task of the file that the cheats change. */
export function realmTask(scratch: string): TaskKind {
  const task = demoFamily().find(
    ({ file, function: name }) => file === "src/count.js" && name === "countAbove",
  )!;
  const made = join(scratch, "bundled");
  writeDemoTasks(made, [task]);
  return { write: (directory) => cpSync(join(made, task.id), directory, { recursive: true }) };
}
