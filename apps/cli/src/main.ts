/** Owns the `mortise` command line: which commands exist, and how a failure ends the process. */
import { MortiseError } from "@mortise/contracts";
import { Command, CommanderError } from "commander";
import { addCapture } from "./commands/capture.js";
import { addCheck } from "./commands/check.js";
import { addClean } from "./commands/clean.js";
import { addCompose } from "./commands/compose.js";
import { addConformance } from "./commands/conformance.js";
import { addEval, addInfer } from "./commands/evaluation.js";
import { addExport } from "./commands/export.js";
import { addGrade } from "./commands/grade.js";
import { addIntegrity } from "./commands/integrity.js";
import { addLearnedVerifier } from "./commands/learned-verifier.js";
import { addProvision } from "./commands/provision.js";
import { addQuickstart } from "./commands/quickstart.js";
import { addRegrade } from "./commands/regrade.js";
import { addReport } from "./commands/report.js";
import { addRun } from "./commands/run.js";
import { addRuns } from "./commands/runs.js";
import { addSandbox } from "./commands/sandbox.js";
import { addSite } from "./commands/site.js";
import { addStatus } from "./commands/status.js";
import { addTasks } from "./commands/tasks.js";
import { addTemplates } from "./commands/templates.js";
import { addVerify } from "./commands/verify.js";
import { printError } from "./output.js";

const program = new Command("mortise")
  .description("reinforcement learning for coding agents inside their own, unmodified harnesses")
  .option("--json", "print the result as one JSON object, the last line of standard output", false)
  .exitOverride()
  .configureOutput({ writeErr: () => {} });

const output = () => program.opts<{ json: boolean }>();
for (const add of [
  addQuickstart,
  addSite,
  addRun,
  addCheck,
  addEval,
  addInfer,
  addStatus,
  addReport,
  addExport,
  addLearnedVerifier,
  addTasks,
  addTemplates,
  addRuns,
  addClean,
  addSandbox,
  addProvision,
  addCompose,
  addCapture,
  addConformance,
  addGrade,
  addVerify,
  addRegrade,
  addIntegrity,
])
  add(program, output);
acceptEverywhere(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = isAnswered(error)
    ? 0
    : printError({ json: process.argv.includes("--json") }, asMortiseError(error));
}

/** `--json` may stand after the command too, where people write it; it always means the same. */
function acceptEverywhere(command: Command): void {
  for (const child of command.commands) {
    child.exitOverride().configureOutput({ writeErr: () => {} });
    if (child.commands.length === 0) {
      child.option("--json", "as above").hook("preAction", (_, action) => {
        if (action.opts<{ json?: boolean }>().json === true) program.setOptionValue("json", true);
      });
    }
    acceptEverywhere(child);
  }
}

/** Help and version are answers, thrown as errors by commander. */
function isAnswered(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

function asMortiseError(error: unknown): unknown {
  if (!(error instanceof CommanderError)) return error;
  if (error.code === "commander.help") {
    return new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: "A command is missing.",
      detail: { field: "command" },
    });
  }
  // Quoted with what an option takes: '--jobs <n>'.
  const field = /'([^' ]+)[^']*'/.exec(error.message)?.[1] ?? "command line";
  return new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: error.message.replace(/^error: /, ""),
    fix: `See \`${namedCommand(process.argv.slice(2))} --help\`.`,
    detail: { field },
  });
}

/** As much of a command line as names a command: `mortise sandbox list`. */
function namedCommand(args: readonly string[]): string {
  let command: Command = program;
  const names = [program.name()];
  for (const arg of args) {
    const child = command.commands.find((one) => one.name() === arg);
    if (child === undefined) continue;
    command = child;
    names.push(arg);
  }
  return names.join(" ");
}
