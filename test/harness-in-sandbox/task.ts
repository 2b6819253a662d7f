/**
 * Owns the task every harness is given: one of the bundled demo family, with room for harnesses of any size. Its
 * repair is one edit, told by name to those who can only edit and as a whole file to those who run commands.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ToolUse, ToolVocabulary } from "@mortise/harness";
import { type DemoTask, demoFamily, taskDigest, writeDemoTasks, writeTaskIndex } from "@mortise/tasks";

/** A harness written for laptops starts with hundreds of MiB; the demo's own wish is for a small one. */
const ROOM: Readonly<Record<string, string>> = {
  timeout_sec: "900",
  cpus: "2",
  memory_mb: "3072",
  storage_mb: "1024",
};

/** Writes the task directory and its index below `directory`. */
export function writeTask(directory: string): DemoTask {
  const task = demoFamily()[0]!;
  writeDemoTasks(directory, [task]);
  const file = join(directory, task.id, "task.toml");
  const wide = readFileSync(file, "utf8").replace(/^(\w+) = \d+$/gm, (line, name: string) =>
    name in ROOM ? `${name} = ${ROOM[name]}` : line,
  );
  writeFileSync(file, wide);
  const digest = taskDigest(join(directory, task.id));
  writeTaskIndex(directory, [{ id: task.id, digest, split: task.split }]);
  return task;
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
