/**
 * Owns `mortise sandbox`: how the managers are, and looking into sandboxes of ended trials that a run kept
 * (`rollout.keep`). Commands run in a copy of what the trial left, without any network.
 */
import { createInterface } from "node:readline/promises";
import {
  type ExecKeptResponse,
  type KeptSandbox,
  MortiseError,
  type SiteConfig,
  TerminationReason,
} from "@mortise/contracts";
import { readSiteConfig } from "@mortise/kernel";
import { type Command, Option } from "commander";
import { note, type OutputOptions, printResult } from "../output.js";
import { runPaths } from "../quickstart/run-directory.js";
import { type ManagerHandle, withManagersOf } from "../sandbox-managers.js";
import { projectPaths } from "../site/project-paths.js";

const CALL_MS = 30_000;

interface Where {
  readonly site?: string;
}
interface ExecFlags extends Where {
  readonly root?: boolean;
  readonly cwd?: string;
}

const siteOption = () =>
  new Option("--site <file>", "site file of a run that is not a quick start").env("MORTISE_SITE");

export function addSandbox(program: Command, output: () => OutputOptions): void {
  const sandbox = program
    .command("sandbox")
    .description("sandbox-managers, and sandboxes of ended trials kept to be looked into");
  sandbox
    .command("status <runId>")
    .description("how the sandbox-managers and their hosts are")
    .addOption(siteOption())
    .action(async (runId: string, { site }: Where) => printStatus(await siteOf(site, runId), output()));
  sandbox
    .command("list <runId>")
    .description("kept sandboxes")
    .addOption(siteOption())
    .action(async (runId: string, { site }: Where) => {
      const kept = await withManagersOf(await siteOf(site, runId), (managers) => keptBy(managers, runId));
      const sandboxes = kept.map(({ sandbox: each }) => listed(each));
      printResult(output(), { sandboxes }, () =>
        sandboxes.length === 0
          ? ["none is kept"]
          : sandboxes.map(
              ({ trial, task, termination, expiresAt }) =>
                `${trial}  ${task}  ${termination}  until ${expiresAt}`,
            ),
      );
    });
  sandbox
    .command("exec <runId> <trial> [command...]")
    .description(
      "run a command in a kept sandbox; without one, every line of standard input as a shell command",
    )
    .option("--root", "as root instead of the agent's user")
    .option("--cwd <path>", "directory inside; the work tree without it")
    .addOption(siteOption())
    .action(async (runId: string, trial: string, command: string[], flags: ExecFlags) => {
      await withManagersOf(await siteOf(flags.site, runId), async (managers) => {
        const { manager } = await find(managers, runId, trial);
        const run = (argv: string[]) => execute(manager, { run: runId, trial, argv }, flags);
        if (command.length === 0) await readCommands(run);
        else print(await run(command), output());
      });
    });
  sandbox
    .command("release <runId> <trial>")
    .description("remove a kept sandbox before its time")
    .addOption(siteOption())
    .action(async (runId: string, trial: string, { site }: Where) => {
      const released = await withManagersOf(await siteOf(site, runId), async (managers) => {
        const { manager } = await find(managers, runId, trial);
        return (await manager.client.releaseKept({ run: runId, trial }, { deadlineMs: CALL_MS })).released;
      });
      printResult(output(), { released }, () => [released ? "removed" : "it was gone already"]);
    });
}

function siteOf(file: string | undefined, runId: string): Promise<SiteConfig> {
  return readSiteConfig(file ?? runPaths(projectPaths(), runId).site);
}

async function keptBy(
  managers: readonly ManagerHandle[],
  runId: string,
): Promise<{ manager: ManagerHandle; sandbox: KeptSandbox }[]> {
  const lists = await Promise.all(
    managers.map(async (manager) => {
      const { sandboxes } = await manager.client.listKept({}, { deadlineMs: CALL_MS });
      return sandboxes.filter(({ run }) => run === runId).map((sandbox) => ({ manager, sandbox }));
    }),
  );
  return lists.flat();
}

async function find(managers: readonly ManagerHandle[], runId: string, trial: string) {
  const found = (await keptBy(managers, runId)).find(({ sandbox }) => sandbox.trial === trial);
  if (found !== undefined) return found;
  throw new MortiseError({
    code: "MORTISE_SANDBOX_NOT_KEPT",
    message: `run ${runId}, trial ${trial}; ${managers.length} sandbox-managers were asked.`,
    detail: { field: "trial" },
  });
}

function listed({ trial, task, termination, expiresAtMs }: KeptSandbox) {
  return {
    trial,
    task,
    termination: TerminationReason[termination].toLowerCase(),
    expiresAt: new Date(Number(expiresAtMs)).toISOString(),
  };
}

function execute(
  { client }: ManagerHandle,
  what: { run: string; trial: string; argv: string[] },
  { root, cwd }: ExecFlags,
): Promise<ExecKeptResponse> {
  const request = { ...what, user: root === true ? "root" : "agent", cwd: cwd ?? "" };
  return client.execKept(request, { deadlineMs: CALL_MS });
}

/** One shell command a line; each is a command of its own, only files last from one to the next. */
async function readCommands(run: (argv: string[]) => Promise<ExecKeptResponse>): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stderr, prompt: "sandbox$ " });
  if (process.stdin.isTTY) lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== "") print(await run(["/bin/sh", "-c", line]), { json: false });
    if (process.stdin.isTTY) lines.prompt();
  }
}

function print(answer: ExecKeptResponse, options: OutputOptions): void {
  const { exitCode, signal, timedOut, outOfMemory, stdout, stderr, outputTruncated, failureReason } = answer;
  if (options.json) {
    const texts = { stdout: Buffer.from(stdout).toString(), stderr: Buffer.from(stderr).toString() };
    printResult(options, { exitCode, signal, timedOut, outOfMemory, failureReason, ...texts }, () => []);
  } else {
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    if (outputTruncated) note("the middle of the output was left out");
    if (failureReason !== "") note(`it did not run: ${failureReason}`);
    else if (timedOut) note("it took too long");
    else if (outOfMemory) note("it ran out of memory");
    else if (signal !== "") note(`ended by ${signal}`);
  }
  const hasFailed = signal !== "" || timedOut || outOfMemory || failureReason !== "";
  process.exitCode = hasFailed ? 1 : exitCode;
}

async function printStatus(site: SiteConfig, output: OutputOptions): Promise<void> {
  const managers = await withManagersOf(site, (handles) =>
    Promise.all(
      handles.map(async ({ address, client }) => {
        const status = await client.getSandboxStatus({}, { deadlineMs: CALL_MS });
        const { backend, insecure, preparing, warm, running, templates, kept, warnings } = status;
        const { cgroups, percpuBytes, diskWait, startP50Ms, forkP50Ms } = status.health ?? {};
        return {
          address,
          ...{ backend, insecure, preparing, warm, running, templates, kept, warnings },
          templateBytes: Number(status.templateBytes),
          health: {
            ...(cgroups === undefined ? {} : { cgroups: Number(cgroups) }),
            ...(percpuBytes === undefined ? {} : { percpuBytes: Number(percpuBytes) }),
            ...(diskWait === undefined ? {} : { diskWait }),
            ...(startP50Ms === undefined ? {} : { startP50Ms }),
            ...(forkP50Ms === undefined ? {} : { forkP50Ms }),
          },
        };
      }),
    ),
  );
  printResult(output, { managers }, () =>
    managers.flatMap(({ address, backend, preparing, warm, running, templates, kept, health, warnings }) => [
      `${address}  ${backend}  ${preparing} preparing, ${warm} warm, ${running} running, ${templates} templates, ${kept} kept`,
      `  ${Object.entries(health)
        .map(([name, value]) => `${name} ${Math.round(value * 100) / 100}`)
        .join(", ")}`,
      ...warnings.map((warning) => `  warning: ${warning}`),
    ]),
  );
}
