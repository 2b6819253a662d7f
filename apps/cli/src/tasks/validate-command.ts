/**
 * Owns `mortise tasks validate`: which tasks are run how often, what is kept of it, and the report. Tasks are judged as
 * the verifier judges trials, in sandboxes of this machine; as plain processes only where that is asked for.
 */
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import {
  canCloseNetwork,
  type Execute,
  executeInProcess,
  executeWithoutNetwork,
  GOLD_ATTEMPTS,
  listTaskIds,
  loadTask,
  QUARANTINE,
  readValidation,
  type TaskValidation,
  validateTask,
  writeQuarantine,
  writeValidation,
} from "@mortise/tasks";
import { type Command, Option } from "commander";
import { EXIT_OPERATOR, note, type OutputOptions, printResult } from "../output.js";
import { INSECURE_NOTE } from "../provision/runc.js";
import { executeInSandbox } from "../sandbox-executor.js";
import { atLeastOne, count } from "./arguments.js";
import { withLocalSandboxes } from "./local-sandboxes.js";

/** How records of the sandbox-manager name these runs. */
const VALIDATION_RUN = "validate";

interface ValidateFlags {
  readonly limit?: number;
  readonly gold: number;
  readonly noop: number;
  readonly jobs: number;
  readonly network: "closed" | "host";
  readonly in: "process" | "sandbox";
  readonly again: boolean;
}

interface Plan extends ValidateFlags {
  readonly root: string;
  readonly ids: readonly string[];
  /** Whether results are kept in the directory: not beside a single task. */
  readonly isKept: boolean;
}

export function addTasksValidate(tasks: Command, output: () => OutputOptions): void {
  tasks
    .command("validate <directory>")
    .description(
      "run every task's gold solution three times, which must resolve, and nothing, which must not; keep the results and list what is not to be used",
    )
    .option("--limit <n>", "validate only the first n tasks", count)
    .option("--gold <n>", "runs of the gold solution", atLeastOne, GOLD_ATTEMPTS)
    .option("--noop <n>", "runs of doing nothing", atLeastOne, 1)
    .option("--jobs <n>", "tasks at once", atLeastOne, availableParallelism())
    .addOption(
      new Option("--network <which>", "of processes: none where this host allows it, or its own")
        .choices(["closed", "host"])
        .default("closed"),
    )
    .addOption(
      new Option(
        "--in <where>",
        "as the verifier judges, in sandboxes of this machine; or as plain processes of this user, whose output is read",
      )
        .choices(["sandbox", "process"])
        .default("sandbox"),
    )
    .option("--again", "run what was validated as often before", false)
    .action(async (directory: string, flags: ValidateFlags) => {
      process.exitCode = await validate(planOf(resolve(directory), flags), output());
    });
}

/** One task directory, or a directory of them. */
function planOf(directory: string, flags: ValidateFlags): Plan {
  const isTask = existsSync(join(directory, "task.toml"));
  const ids = isTask ? [basename(directory)] : listTaskIds(directory);
  if (ids.length === 0)
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `${directory} has no task.toml, nor has a directory in it.`,
      fix: "Name a task directory, or a directory of them.",
      detail: { path: directory },
    });
  return {
    ...flags,
    root: isTask ? dirname(directory) : directory,
    ids: ids.slice(0, flags.limit),
    isKept: !isTask,
  };
}

async function validate(plan: Plan, output: OutputOptions): Promise<number> {
  const { validations, kept } =
    plan.in === "sandbox" ? await validateInSandboxes(plan) : await validateAsProcesses(plan);
  const invalid = validations.filter(({ isValid }) => !isValid);
  const quarantined = plan.isKept ? writeQuarantine(plan.root).length : 0;
  const figures = figuresOf(validations);
  printResult(
    output,
    {
      directory: plan.root,
      validated: validations.length,
      kept,
      invalid: invalid.length,
      ...figures,
      quarantined,
      tasks: validations,
    },
    () => [
      ...invalid.flatMap(({ id, problems }) => problems.map((problem) => `${id}: ${problem}`)),
      `${validations.length} tasks validated${kept === 0 ? "" : ` (${kept} before)`}, ${invalid.length} invalid`,
      ...(plan.in === "sandbox"
        ? [`${figures.withChannel} with a channel, ${figures.withAlteredTests} with altered tests`]
        : []),
      `${figures.flaky} flaky, ${figures.egressFree} egress-free; a gold run takes ${figures.medianWallMs} ms (median of medians), ${figures.maxWallMs} ms at most`,
      ...(quarantined === 0 ? [] : [`${quarantined} in ${join(plan.root, QUARANTINE)}`]),
    ],
  );
  return invalid.length === 0 ? 0 : EXIT_OPERATOR;
}

interface Validated {
  readonly validations: TaskValidation[];
  /** Of them, those that were stored. */
  readonly kept: number;
}

async function validateAsProcesses(plan: Plan): Promise<Validated> {
  note(INSECURE_NOTE);
  const isClosed = plan.network === "closed" && canCloseNetwork();
  if (plan.network === "closed" && !isClosed)
    note(
      "this host allows no network namespace: tasks run with its network, and none is shown to be egress-free",
    );
  return isClosed
    ? validateAll(plan, "process without network", executeWithoutNetwork)
    : validateAll(plan, "process", executeInProcess);
}

/** Each run in a fresh sandbox, with the network the task's verifier asks for. */
async function validateInSandboxes(plan: Plan): Promise<Validated> {
  return withLocalSandboxes(plan.root, note, async ({ backend, client, stop }) => {
    note(`sandbox backend: ${backend}`);
    return validateAll(plan, `verifier (${backend})`, executeInSandbox(client, VALIDATION_RUN, stop));
  });
}

/** In the order of the ids. What is stored and was run as often is taken from there. */
async function validateAll(plan: Plan, executor: string, execute: Execute): Promise<Validated> {
  const results = new Map<string, TaskValidation>();
  const waiting = [...plan.ids];
  let kept = 0;
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const stored = plan.isKept && !plan.again ? readValidation(plan.root, id) : undefined;
      if (stored !== undefined && stored.executor === executor && wasRunAsOften(stored.validation, plan)) {
        results.set(id, stored.validation);
        kept++;
        continue;
      }
      const attempts = { goldAttempts: plan.gold, noopAttempts: plan.noop };
      const validation = await validateTask(loadTask(join(plan.root, id)), execute, attempts);
      results.set(id, validation);
      if (plan.isKept) writeValidation(plan.root, executor, validation, new Date());
    }
  };
  await Promise.all(Array.from({ length: plan.jobs }, work));
  return { validations: plan.ids.map((id) => results.get(id)!), kept };
}

function wasRunAsOften({ gold, noop }: TaskValidation, plan: Plan): boolean {
  return gold.attempts >= plan.gold && noop.attempts >= plan.noop;
}

function figuresOf(validations: readonly TaskValidation[]) {
  const medians = validations.flatMap(({ wallMs }) => wallMs?.median ?? []).sort((a, b) => a - b);
  return {
    flaky: validations.filter(({ flakeRate }) => flakeRate > 0).length,
    withChannel: validations.filter(({ protection }) => (protection?.channel ?? "none") !== "none").length,
    withAlteredTests: validations.filter(({ protection }) => (protection?.alteredTests ?? 0) > 0).length,
    egressFree: validations.filter(({ isEgressFree }) => isEgressFree === true).length,
    medianWallMs: medians[Math.floor((medians.length - 1) / 2)] ?? 0,
    maxWallMs: Math.max(0, ...validations.map(({ wallMs }) => wallMs?.max ?? 0)),
  };
}
