/** Owns `mortise tasks`: generating the demo set, and where the other commands on tasks hang. */
import { resolve } from "node:path";
import { generateDemoTasks } from "@mortise/tasks";
import type { Command } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { HELD_OUT_TASKS, TRAIN_TASKS } from "../quickstart/recipe.js";
import { count } from "../tasks/arguments.js";
import { addTasksBuild } from "../tasks/build-command.js";
import { addTasksImport } from "../tasks/import-command.js";
import { addTasksIndex } from "../tasks/index-command.js";
import { addTasksValidate } from "../tasks/validate-command.js";

interface GenerateFlags {
  readonly seed: number;
  readonly train: number;
  readonly heldOut: number;
}

export function addTasks(program: Command, output: () => OutputOptions): void {
  const tasks = program.command("tasks").description("generate, import, choose, build and validate tasks");
  tasks
    .command("generate <directory>")
    .description("write the demo tasks and their index into a new directory")
    .option("--seed <n>", "seed of the choice of tasks", count, 1)
    .option("--train <n>", "training tasks", count, TRAIN_TASKS)
    .option("--held-out <n>", "held-out tasks", count, HELD_OUT_TASKS)
    .action((directory: string, flags: GenerateFlags) => {
      const { index } = generateDemoTasks(resolve(directory), flags);
      const { train, heldOut } = flags;
      printResult(output(), { directory: resolve(directory), tasks: index.length, train, heldOut }, () => [
        `${index.length} tasks in ${resolve(directory)}: ${train} for training, ${heldOut} held out`,
      ]);
    });
  addTasksImport(tasks, output);
  addTasksIndex(tasks, output);
  addTasksBuild(tasks, output);
  addTasksValidate(tasks, output);
}
