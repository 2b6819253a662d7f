/** Owns `mortise tasks`: generating the demo set and validating any directory of Harbor tasks. Importing and choosing are in tasks/. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import {
  executeInProcess,
  generateDemoTasks,
  listTaskIds,
  loadTask,
  type TaskValidation,
  validateTask,
} from "@mortise/tasks";
import type { Command } from "commander";
import { EXIT_OPERATOR, note, type OutputOptions, printResult } from "../output.js";
import { INSECURE_NOTE } from "../provision/runc.js";
import { HELD_OUT_TASKS, TRAIN_TASKS } from "../quickstart/recipe.js";
import { count } from "../tasks/arguments.js";
import { addTasksImport } from "../tasks/import-command.js";
import { addTasksIndex } from "../tasks/index-command.js";

interface GenerateFlags {
  readonly seed: number;
  readonly train: number;
  readonly heldOut: number;
}

export function addTasks(program: Command, output: () => OutputOptions): void {
  const tasks = program.command("tasks").description("generate, import, choose and validate tasks");
  addTasksImport(tasks, output);
  addTasksIndex(tasks, output);
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
  tasks
    .command("validate <directory>")
    .description(
      "run every task's gold solution three times, which must resolve, and nothing, which must not",
    )
    .option("--limit <n>", "validate only the first n tasks", count)
    .action(async (directory: string, { limit }: { limit?: number }) => {
      process.exitCode = await validate(resolve(directory), limit, output());
    });
}

/** One task directory, or a directory of them. */
async function validate(
  directory: string,
  limit: number | undefined,
  output: OutputOptions,
): Promise<number> {
  note(INSECURE_NOTE);
  const isTask = existsSync(join(directory, "task.toml"));
  const places = isTask ? [directory] : listTaskIds(directory).map((id) => join(directory, id));
  if (places.length === 0)
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${directory} has no task.toml, nor has a directory in it.`,
      fix: "Name a task directory, or a directory of them.",
      detail: { path: directory },
    });
  const validations: TaskValidation[] = [];
  for (const place of places.slice(0, limit))
    validations.push(await validateTask(loadTask(place), executeInProcess));
  const invalid = validations.filter(({ isValid }) => !isValid);
  printResult(
    output,
    { directory, validated: validations.length, invalid: invalid.length, tasks: validations },
    () => [
      ...invalid.flatMap(({ id, problems }) => problems.map((problem) => `${id}: ${problem}`)),
      `${validations.length} tasks validated, ${invalid.length} invalid`,
    ],
  );
  return invalid.length === 0 ? 0 : EXIT_OPERATOR;
}
