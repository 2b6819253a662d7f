/**
 * Owns the task every harness is given: one of the bundled demo family, with room for harnesses of any size, once with
 * the repository beside it and once with an image that has the repository in it. Its repair is one edit, told by name
 * to those who can only edit and as a whole file to those who run commands.
 */
import { cpSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ToolUse, ToolVocabulary } from "@mortise/harness";
import { type DemoTask, demoFamily, taskDigest, writeDemoTasks, writeTaskIndex } from "@mortise/tasks";
import { imageWithoutLibrary } from "./image.js";

/** Splits of the task index, by where the task runs. */
export const ON_HOST_IMAGE = "train";
export const WITHOUT_LIBRARY = "without-library";

/** A harness written for laptops starts with hundreds of MiB; the demo's own wish is for a small one. */
const ROOM: Readonly<Record<string, string>> = {
  timeout_sec: "900",
  cpus: "2",
  memory_mb: "3072",
  storage_mb: "1024",
};

/** Writes both task directories and their index below `tasks`; the image lies below `scratch`. */
export async function writeTasks(tasks: string, scratch: string): Promise<DemoTask> {
  const task = demoFamily()[0]!;
  writeDemoTasks(tasks, [task]);
  rewrite(join(tasks, task.id, "task.toml"), (text) =>
    text.replace(/^(\w+) = \d+$/gm, (line, name: string) =>
      name in ROOM ? `${name} = ${ROOM[name]}` : line,
    ),
  );
  const inImage = `${task.id}-in-image`;
  const directory = join(tasks, inImage);
  cpSync(join(tasks, task.id), directory, { recursive: true });
  const repository = join(scratch, "repository");
  renameSync(join(directory, "environment/repository"), repository);
  const layout = await imageWithoutLibrary(scratch, repository);
  rewrite(join(directory, "task.toml"), (text) =>
    text.replace("[environment]\n", `[environment]\ndocker_image = ${JSON.stringify(`oci:${layout}`)}\n`),
  );
  const entry = (id: string, split: string) => ({ id, digest: taskDigest(join(tasks, id)), split });
  writeTaskIndex(tasks, [entry(task.id, ON_HOST_IMAGE), entry(inImage, WITHOUT_LIBRARY)]);
  return task;
}

function rewrite(file: string, change: (text: string) => string): void {
  writeFileSync(file, change(readFileSync(file, "utf8")));
}

/** The calls that solve it, one a reply, in the harness's own tools. */
export function solvingCalls(task: DemoTask, { run, replace }: ToolVocabulary): ToolUse[] {
  if (run === undefined) return [replace!(task.gold.old, task.gold.new)];
  return [
    run(`ls && cat ${task.file}`),
    run(`cat > ${task.file} <<'END_OF_FILE'\n${task.goldFile}END_OF_FILE`),
    run(`node --check ${task.file} && echo checked`),
  ];
}
