/**
 * Owns putting a task's directory on disk: whole or not at all. What is there already and equal is kept; what
 * differs is a question for the caller. Does not decide what is written.
 */
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeTaskFiles } from "../../demo/task-directory.js";
import { type TaskFileContent, taskDigest } from "../../harbor/digest.js";

export type Standing = "absent" | "equal" | "different";

/** Names no task can have, since they begin with a dot. */
const PARTIAL = ".partial-";

/** What stands at a task's place. */
export function standingOf(directory: string, digest: string): Standing {
  if (!existsSync(directory)) return "absent";
  return taskDigest(directory) === digest ? "equal" : "different";
}

/** Writes a directory beside its place and renames it there; another one at the place is removed. */
export function putTask(root: string, id: string, files: readonly TaskFileContent[]): void {
  const partial = join(root, `${PARTIAL}${id}`);
  rmSync(partial, { recursive: true, force: true });
  writeTaskFiles(partial, files);
  rmSync(join(root, id), { recursive: true, force: true });
  renameSync(partial, join(root, id));
}

/** Removes what an import that was ended left half written. */
export function removePartial(root: string): void {
  if (!existsSync(root)) return;
  for (const name of readdirSync(root))
    if (name.startsWith(PARTIAL)) rmSync(join(root, name), { recursive: true, force: true });
}
