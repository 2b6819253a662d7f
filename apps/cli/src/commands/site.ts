/**
 * Owns `mortise site`: a site of one machine made, its shared services kept up, looked at and taken down. What each does
 * is site/.
 */
import { dirname, resolve } from "node:path";
import { HARNESS_ADAPTERS } from "@mortise/contracts";
import { type Command, Option } from "commander";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import { BACKENDS, type BackendWish } from "../site/init/backend.js";
import { type PreparedSite, prepareSite } from "../site/init/prepare-site.js";
import { keepSiteUp } from "../site/up/bring-up.js";
import { takeDown, upInBackground } from "../site/up/detached.js";
import { siteStatus, statusLines } from "../site/up/status.js";
import { SiteLineView, SiteTerminalView } from "../site/up/view.js";
import { wholeNumber } from "./quickstart.js";

const DEFAULT_DIRECTORY = "mortise-site";

interface SiteFlags {
  readonly site: string;
}

export function addSite(program: Command, output: () => OutputOptions): void {
  const site = program
    .command("site")
    .description("make a site for your own tasks and harness on this machine, and keep its services up");
  addInit(site, output);
  site
    .command("up")
    .description("start the site's bus and shared services and stay until Ctrl-C, which drains them")
    .addOption(siteOption())
    .option("--detach", "stay up in the background, and return when everything is up", false)
    .action(async ({ site: given, detach }: SiteFlags & { detach: boolean }) => {
      const file = resolve(given);
      if (detach) {
        const { pid, log } = await upInBackground(file);
        printResult(output(), { site: file, state: "up", pid, log }, () => [
          `${file} is up: process ${pid}, log ${log}`,
          `end it with: mortise site down --site ${given}`,
        ]);
        return;
      }
      await keepSiteUp(file, process.stderr.isTTY ? new SiteTerminalView() : new SiteLineView(note));
      printResult(output(), { site: file, state: "down" }, () => [`${file} is down`]);
    });
  site
    .command("down")
    .description("drain and end what `mortise site up` keeps up")
    .addOption(siteOption())
    .action(async ({ site: given }: SiteFlags) => {
      const file = resolve(given);
      const outcome = await takeDown(file);
      const said = {
        up: `${file} is down`,
        down: `${file} was not up`,
        dead: `${file} was not up: the process that kept it up had ended without draining`,
      }[outcome.was];
      printResult(output(), { site: file, state: "down", was: outcome.was }, () => [said]);
    });
  site
    .command("status")
    .description("whether a site is up, which services are live and where, and which runs are on it")
    .addOption(siteOption())
    .action(async ({ site: given }: SiteFlags) => {
      const status = await siteStatus(resolve(given));
      printResult(output(), status, () => statusLines(status));
      process.exitCode = status.state === "up" ? 0 : EXIT_FAILURE;
    });
}

interface InitFlags {
  readonly tasks?: string;
  readonly heldOut: number;
  readonly harness?: string;
  readonly backend: BackendWish;
  readonly engine: string;
  readonly model?: string;
  readonly checkpoint?: string;
  readonly runId: string;
}

function addInit(site: Command, output: () => OutputOptions): void {
  site
    .command("init [directory]")
    .description(
      "check your tasks, harness, engine and checkpoint, and write a site for them with a first run file; what is there is kept",
    )
    .option(
      "--tasks <path>",
      "directory of Harbor task directories, or an index (index.json, JSONL, parquet)",
    )
    .option(
      "--held-out <n>",
      "tasks set apart for evaluation, where no index says the splits",
      wholeNumber(0),
      0,
    )
    .option("--harness <name>", `${HARNESS_ADAPTERS.join(", ")}, or a TOML file with a command of your own`)
    .addOption(new Option("--backend <name>", "how agents are sealed in").choices(BACKENDS).default("auto"))
    .option("--engine <which>", "embedded, base URLs of vLLM servers, or a script file", "embedded")
    .option("--model <name>", "name the servers serve the policy under, where they serve several")
    .option(
      "--checkpoint <directory>",
      "Hugging Face directory of the policy; without it no run file is written",
    )
    .option("--run-id <id>", "id of the run in the run file", "first")
    .action(async (directory: string | undefined, flags: InitFlags) => {
      const prepared = await prepareSite({
        ...flags,
        directory: directory ?? DEFAULT_DIRECTORY,
        natsUrl: process.env.NATS_URL || undefined,
        note,
      });
      printResult(output(), prepared, () => initLines(prepared));
    });
}

function initLines({ site, run, files, checked, warnings }: PreparedSite): string[] {
  return [
    ...checked.map((line) => `ok       ${line}`),
    ...warnings.map((line) => `!!       ${line}`),
    ...files.map(({ path, state }) => `${state.padEnd(8)} ${path}`),
    `next: mortise site up --site ${quoted(site)}`,
    run === undefined
      ? `and, for a run file: mortise site init ${quoted(dirname(site))} --checkpoint <directory>`
      : `then: mortise run --site ${quoted(site)} --run ${quoted(run)}`,
  ];
}

/** A path as a shell takes it. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function siteOption(): Option {
  return new Option("--site <file>", "site file").env("MORTISE_SITE").makeOptionMandatory();
}
