/**
 * Owns `mortise verify`: a diff, or a file of predictions, graded in sandboxes of this machine as the verifier grades
 * trials. Does not grade itself (apps/cli/src/verify).
 */
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { AskOnce } from "@mortise/verifier";
import { type Command, InvalidArgumentError } from "commander";
import { EXIT_OPERATOR, note, type OutputOptions, printResult } from "../output.js";
import { askManager } from "../sandbox-executor.js";
import { count } from "../tasks/arguments.js";
import { withLocalSandboxes } from "../tasks/local-sandboxes.js";
import { Instances } from "../verify/instances.js";
import { type Prediction, readPredictions, withEnd } from "../verify/predictions.js";
import { type VerifyVerdict, verifyOne, type Wanted } from "../verify/verify-task.js";

interface Flags {
  readonly patch?: string;
  readonly predictions?: string;
  readonly out?: string;
  readonly jobs: number;
}

export function addVerify(program: Command, output: () => OutputOptions): void {
  program
    .command("verify <tasks>")
    .description(
      "verify a diff against a task, or predictions against a directory of tasks, in sandboxes of this machine: as the verifier grades trials",
    )
    .option(
      "--patch <file>",
      "a unified diff against the work tree of one task; without it, the task as it is",
    )
    .option("--predictions <file>", "JSON or JSONL of instance_id, model_patch and model_name_or_path")
    .option("--out <directory>", "keep evidence, log and verdict of each")
    .option("--jobs <n>", "verifications at once", atLeastOne, availableParallelism())
    .action(async (tasks: string, flags: Flags) => {
      process.exitCode = await run(resolve(tasks), flags, output());
    });
}

function atLeastOne(text: string): number {
  const value = count(text);
  if (value > 0) return value;
  throw new InvalidArgumentError("At least 1 is needed.");
}

interface Work {
  /** What the sandbox-manager is given. */
  readonly root: string;
  readonly wanted: readonly Wanted[];
  /** Predictions with nothing in them: unresolved, and nothing is run. */
  readonly empty: readonly Prediction[];
}

async function run(tasks: string, flags: Flags, output: OutputOptions): Promise<number> {
  const { root, wanted, empty } = await workOf(tasks, flags);
  // Made now: that verdicts cannot be kept would otherwise be told after hours of grading.
  if (flags.out !== undefined) await mkdir(resolve(flags.out), { recursive: true });
  const verdicts = wanted.length === 0 ? [] : await verifyAll(root, wanted, flags.jobs);
  const named = (verdict: string) => verdicts.filter((one) => one.verdict === verdict);
  const result = {
    submitted: verdicts.length + empty.length,
    resolved: named("resolved").length,
    unresolved: named("unresolved").length,
    empty: empty.map(({ instance }) => instance),
    tamper: named("invalid-tamper").length,
    infra: named("invalid-infra").length,
    task: named("invalid-task").length,
    verdicts,
  };
  printResult(output, result, () => [...verdicts.flatMap(lines), summary(result)]);
  return result.infra + result.task === 0 ? 0 : EXIT_OPERATOR;
}

async function workOf(tasks: string, { patch, predictions, out }: Flags): Promise<Work> {
  if (patch !== undefined && predictions !== undefined)
    throw usage("--patch", "Give --patch or --predictions.");
  const kept = out === undefined ? undefined : resolve(out);
  if (predictions === undefined) {
    if (!existsSync(join(tasks, "task.toml")))
      throw usage("tasks", `${tasks} is no task directory: name one, or give --predictions.`);
    const text = patch === undefined ? "" : withEnd(await readFile(patch, "utf8"));
    if (patch !== undefined && text === "") throw usage("--patch", `${patch} is empty.`);
    const instance = basename(tasks);
    return {
      root: dirname(tasks),
      wanted: [{ directory: tasks, patch: text, instance, model: "", out: kept }],
      empty: [],
    };
  }
  const instances = new Instances(tasks);
  const rows = await readPredictions(predictions);
  const wanted = rows
    .filter((row) => row.patch !== "")
    .map((row) => ({ ...row, directory: instances.directoryOf(row.instance), out: kept }));
  return { root: tasks, wanted, empty: rows.filter((row) => row.patch === "") };
}

async function verifyAll(root: string, wanted: readonly Wanted[], jobs: number): Promise<VerifyVerdict[]> {
  return withLocalSandboxes(root, note, async ({ backend, client, stop }) => {
    note(`sandbox backend: ${backend}`);
    const ask: AskOnce = askManager(client, stop);
    const verdicts: VerifyVerdict[] = [];
    const waiting = [...wanted.entries()];
    const work = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const [at, one] = next;
        verdicts[at] = await verifyOne(one, ask, stop);
        note(`${one.instance}: ${verdicts[at].verdict}`);
      }
    };
    await Promise.all(Array.from({ length: Math.min(jobs, wanted.length) }, work));
    return verdicts;
  });
}

function lines(verdict: VerifyVerdict): string[] {
  const { instance, reason, grader, passed, tests, failed, findings, stripped, applied, evidence } = verdict;
  return [
    `${instance}: ${verdict.verdict}`,
    `  because       ${reason}`,
    `  grader        ${grader}, ${passed} of ${tests} expected tests passed`,
    `  channel       ${verdict.channel}; altered tests ${verdict.alteredTests}`,
    ...(applied === undefined ? [] : [`  applied by    ${applied}`]),
    ...failed.map((name) => `  not passed    ${name}`),
    ...stripped.map(({ path, reason: why }) => `  left out      ${path}: ${why}`),
    ...findings.map(({ subject, detail }) => `  finding       ${subject}: ${detail}`),
    ...(evidence === undefined ? [] : [`  evidence      ${evidence}`]),
  ];
}

function summary(result: {
  submitted: number;
  resolved: number;
  unresolved: number;
  empty: readonly string[];
  tamper: number;
  infra: number;
  task: number;
}): string {
  const { submitted, resolved, unresolved, empty, tamper, infra, task } = result;
  return `${submitted} submitted: ${resolved} resolved, ${unresolved} unresolved, ${empty.length} empty, ${tamper} tamper, ${infra + task} without a verdict`;
}

function usage(field: string, message: string): MortiseError {
  return new MortiseError({ code: "MORTISE_OPERATOR_USAGE", message, detail: { field } });
}
