/**
 * Owns `mortise eval` and `mortise infer`: their options and what is printed at the end. Both are runs without a trainer
 * (evaluation/): `eval` measures under a protocol file, `infer` collects attempts and chooses tasks by them.
 */
import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { type EvaluationProtocol, MortiseError } from "@mortise/contracts";
import { loadToml, mergeSets } from "@mortise/kernel";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type EvaluationEnd, evaluate } from "../evaluation/evaluate.js";
import { protocolIn, readProtocol } from "../evaluation/protocol-file.js";
import { resultLines } from "../evaluation/result-lines.js";
import { type EvaluationWish, evaluationPaths, RUN_ID, storedWish } from "../evaluation/wish.js";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import { BACKENDS, type BackendWish } from "../site/init/backend.js";
import { Interrupted } from "../site/interrupts.js";
import { collected, range } from "../tasks/arguments.js";
import { funnelTable } from "../tasks/funnel-table.js";
import { wholeNumber } from "./quickstart.js";

type CommandName = EvaluationWish["command"];

/** What `infer` does without a protocol file. */
const INFERENCE = { schema: 1, name: "inference", attempts: 8 };

interface Flags {
  readonly checkpoint?: string;
  readonly engine: string;
  readonly model?: string;
  readonly harness?: string;
  readonly tasks?: string;
  readonly split?: string;
  readonly site?: string;
  readonly backend: BackendWish;
  readonly concurrency: number;
  readonly protocol?: string;
  readonly out?: string;
  readonly runId?: string;
  readonly resume?: string;
  /** `infer` only. */
  readonly attempts?: number;
  readonly set?: readonly string[];
  readonly select?: { readonly min?: number; readonly max?: number };
}

export function addEval(program: Command, output: () => OutputOptions): void {
  const command = program
    .command("eval")
    .description(
      "measure a checkpoint or an endpoint in a harness on tasks, under a protocol file that is recorded with the result",
    )
    .option(
      "--protocol <file>",
      "attempts, sampling, limits, prompt, network, shown tests: docs/evaluation.md",
    );
  withShared(command).action((flags: Flags) => run("eval", flags, output()));
}

export function addInfer(program: Command, output: () => OutputOptions): void {
  const command = program
    .command("infer")
    .description(
      "attempt every task several times; write the attempts, how difficult each task is, and an index of those within a band",
    )
    .option("--protocol <file>", "as of `mortise eval`; the defaults with 8 attempts when absent")
    .option("--attempts <n>", "attempts at each task, whatever the protocol says", wholeNumber(1))
    .option("--set <key=value>", "another value of a key of the protocol; may be repeated", collected, [])
    .option("--select <range>", "solve rates of the tasks that are selected: 0.1..0.9", solveRates);
  withShared(command).action((flags: Flags) => run("infer", flags, output()));
}

function withShared(command: Command): Command {
  // Not the site: its variable may be set for other commands.
  const wishes = [
    "protocol",
    "attempts",
    "set",
    "select",
    "checkpoint",
    "engine",
    "model",
    "harness",
    "tasks",
    "split",
    "backend",
    "out",
    "runId",
  ];
  return command
    .option("--checkpoint <directory>", "Hugging Face directory: weights, and the tokenizer of any engine")
    .option("--engine <which>", "embedded, base URLs of vLLM servers, or a script file", "embedded")
    .option("--model <name>", "name the servers serve the policy under, where they serve several")
    .option("--harness <name>", "as the site names it; without --site an adapter's name or a TOML file")
    .option("--tasks <path>", "directory of Harbor tasks, or an index; the site's own tasks when absent")
    .option("--split <name>", "only the tasks of this split")
    .addOption(
      new Option(
        "--site <file>",
        "site that is up; without one a site is brought up for as long as it lasts",
      ).env("MORTISE_SITE"),
    )
    .addOption(
      new Option("--backend <name>", "sandboxes of a site of its own").choices(BACKENDS).default("auto"),
    )
    .option("--concurrency <n>", "agents at once", wholeNumber(1), 2 * availableParallelism())
    .option("--out <directory>", "where the result goes; into the run's directory when absent")
    .option("--run-id <id>", "id of the run; made when absent", runName)
    .addOption(
      new Option(
        "--resume <runId>",
        "go on where an evaluation was ended; nothing that has ended is repeated",
      )
        .argParser(runName)
        .conflicts(wishes),
    );
}

async function run(name: CommandName, flags: Flags, output: OutputOptions): Promise<void> {
  const wish =
    flags.resume === undefined
      ? await wishOf(name, flags)
      : { ...(await storedWish(flags.resume)), concurrency: flags.concurrency };
  note(`run ${wish.runId}`);
  const end = await evaluate(wish, note);
  if (end.stopped !== undefined && !(end.stopped instanceof Interrupted)) throw end.stopped;
  tell(end, output);
  process.exitCode = exitCode(end);
}

function tell({ result, written, stopped }: EvaluationEnd, output: OutputOptions): void {
  const { funnel, selected, directory, files } = written;
  const resume = `mortise ${result.command} --resume ${result.run}`;
  const interrupted = stopped instanceof Interrupted ? stopped.signal : null;
  printResult(
    output,
    {
      ...result,
      out: directory,
      files,
      ...(funnel === undefined ? {} : { funnel, selected }),
      interrupted,
      resume,
    },
    () => [
      ...resultLines(result),
      ...(funnel === undefined ? [] : ["", ...funnelTable(funnel)]),
      "",
      `written to ${directory}`,
    ],
  );
  for (const problem of result.problems) note(`not as the protocol asks: ${problem}`);
  if (interrupted !== null) note(`interrupted by ${interrupted}; go on with: ${resume}`);
}

/** A result that is not what its protocol asked for is no success. */
function exitCode({ result, stopped }: EvaluationEnd): number {
  if (stopped instanceof Interrupted) return stopped.exitCode;
  return result.problems.length === 0 ? 0 : EXIT_FAILURE;
}

async function wishOf(command: CommandName, flags: Flags): Promise<EvaluationWish> {
  const runId = flags.runId ?? newId(command);
  const place = (path: string | undefined) => (path === undefined ? undefined : resolve(path));
  return {
    command,
    runId,
    protocol: await protocolOf(command, flags),
    checkpoint: resolve(required(flags.checkpoint, "--checkpoint")),
    engine: isPath(flags.engine) ? resolve(flags.engine) : flags.engine,
    ...(flags.model === undefined ? {} : { model: flags.model }),
    harness: required(flags.harness, "--harness"),
    ...(flags.site === undefined ? {} : { site: resolve(flags.site) }),
    backend: flags.backend,
    ...(flags.tasks === undefined ? {} : { tasks: place(flags.tasks)! }),
    ...(flags.split === undefined ? {} : { split: flags.split }),
    concurrency: flags.concurrency,
    ...(flags.select === undefined ? {} : { select: flags.select }),
    out: place(flags.out) ?? join(evaluationPaths(runId).directory, "result"),
  };
}

async function protocolOf(command: CommandName, flags: Flags): Promise<EvaluationProtocol> {
  if (command === "eval") return readProtocol(required(flags.protocol, "--protocol"));
  const base = flags.protocol === undefined ? INFERENCE : await loadToml(flags.protocol);
  const { attempts, set = [] } = flags;
  const changed = mergeSets(attempts === undefined ? base : { ...base, attempts }, set);
  return protocolIn(changed, flags.protocol ?? "--set");
}

function isPath(engine: string): boolean {
  return engine !== "embedded" && !/^https?:/.test(engine);
}

function newId(command: CommandName): string {
  const stamp = new Date().toISOString().replaceAll(/[-:]/g, "").slice(0, 15);
  return `${command[0]}${stamp}-${randomBytes(2).toString("hex")}`;
}

function solveRates(text: string): { min?: number; max?: number } {
  const bounds = range(text);
  if ((bounds.max ?? 0) <= 1) return bounds;
  throw new InvalidArgumentError("Solve rates are shares: 0..1.");
}

/** The run's directory is named by it. */
function runName(text: string): string {
  if (RUN_ID.test(text)) return text;
  throw new InvalidArgumentError("1 to 64 letters, digits, _ and - are allowed.");
}

function required(value: string | undefined, flag: string): string {
  if (value !== undefined) return value;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `${flag} is absent.`,
    fix: `Give ${flag}; docs/evaluation.md shows a whole command.`,
    detail: { field: flag },
  });
}
