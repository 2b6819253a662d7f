/**
 * Owns writing a demo task set: all task directories and the index, complete or not at all.
 * Does not validate them with real runs (validation/).
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { digestOfFiles } from "../harbor/digest.js";
import { type TaskIndexEntry, writeTaskIndex } from "../harbor/task-index.js";
import { readLibrary } from "./library.js";
import { type DemoPlanOptions, type DemoTask, planDemoTasks } from "./plan.js";
import { demoTaskFiles, writeTaskFiles } from "./task-directory.js";

export interface DemoTaskSet {
  readonly train: readonly DemoTask[];
  readonly heldOut: readonly DemoTask[];
  readonly index: readonly TaskIndexEntry[];
}

/**
 * Writes Harbor task directories and index.json (splits `train` and `heldout`) into a directory that is absent
 * or empty; deterministic from the seed. Throws MORTISE_OPERATOR_USAGE for a directory with content or numbers
 * the family cannot give. A failure leaves nothing behind.
 */
export function generateDemoTasks(outDir: string, options: DemoPlanOptions): DemoTaskSet {
  const { train, heldOut } = planDemoTasks(options);
  return { train, heldOut, index: writeDemoTasks(outDir, [...train, ...heldOut]) };
}

/** Writes the given tasks and their index; same conditions as `generateDemoTasks`. */
export function writeDemoTasks(outDir: string, tasks: readonly DemoTask[]): TaskIndexEntry[] {
  const target = resolve(outDir);
  refuseContent(target);
  const partial = join(dirname(target), `.${process.pid}.partial-tasks`);
  mkdirSync(partial, { recursive: true });
  try {
    const library = readLibrary();
    const index = tasks.map((task) => {
      const files = demoTaskFiles(task, library);
      writeTaskFiles(join(partial, task.id), files);
      return { id: task.id, digest: digestOfFiles(files), split: task.split };
    });
    writeTaskIndex(partial, index);
    rmSync(target, { recursive: true, force: true });
    renameSync(partial, target);
    return index;
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    throw error;
  }
}

function refuseContent(directory: string): void {
  const stat = statSync(directory, { throwIfNoEntry: false });
  if (stat === undefined || (stat.isDirectory() && readdirSync(directory).length === 0)) return;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `${directory} exists and is not an empty directory.`,
    fix: "Name a new directory, or remove this one first.",
    detail: { path: directory },
  });
}
