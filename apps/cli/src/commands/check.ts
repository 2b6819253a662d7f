/**
 * Owns `mortise check`: whether a site and a run file can work here, before anything is started. There is no
 * flag to force past it.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { MortiseError, type RunConfig, type SiteConfig } from "@mortise/contracts";
import { readRunConfig, readSiteConfig } from "@mortise/kernel";
import { openCheckpoint } from "@mortise/policy";
import { loadIndexedTask, readTaskIndex } from "@mortise/tasks";
import type { Command } from "commander";
import { assertFreeSpace } from "../free-space.js";
import { type OutputOptions, printResult } from "../output.js";
import { readGreeting } from "../provision/nats-server/version.js";

interface Flags {
  readonly site: string;
  readonly run: string;
  readonly set: readonly string[];
}

export function addCheck(program: Command, output: () => OutputOptions): void {
  program
    .command("check")
    .description(
      "check a site file and a run file against each other and this machine; prints what they resolve to",
    )
    .requiredOption("--site <file>", "site file")
    .requiredOption("--run <file>", "run file")
    .option("--set <key=value...>", "override a field of the run file", [])
    .action(async ({ site: siteFile, run: runFile, set }: Flags) => {
      const site = await readSiteConfig(siteFile);
      const run = await readRunConfig(runFile, set);
      const checked = await preflight(site, run);
      printResult(output(), { site, run, checked }, () => [
        JSON.stringify({ site, run }, undefined, 2),
        ...checked.map((line) => `ok  ${line}`),
      ]);
    });
}

/** What was checked, one line each. Throws the first thing that would stop the run. */
async function preflight(site: SiteConfig, run: RunConfig): Promise<string[]> {
  const { version } = await readGreeting(site.nats.url);
  const checkpoint = await openCheckpoint(run.policy.checkpoint);
  const index = readTaskIndex(site.tasks.directory);
  const counts = [run.tasks.train, run.tasks.evaluate].map((split) => assertSplit(site, index, split, run));
  if (site.harness[run.rollout.harness] === undefined) {
    throw new MortiseError({
      code: "MORTISE_HARNESS_UNKNOWN",
      message: `rollout.harness is ${run.rollout.harness}; the site file has ${Object.keys(site.harness).join(", ") || "none"}.`,
      detail: { field: "rollout.harness" },
    });
  }
  assertFile(site.identity.directory, "identity.directory");
  if (run.warmStart !== undefined) assertFile(run.warmStart.demonstrations, "warmStart.demonstrations");
  const place = existsSync(site.state.directory) ? site.state.directory : join(site.state.directory, "..");
  await assertFreeSpace(place);
  return [
    `nats-server ${version} at ${site.nats.url}`,
    `checkpoint ${run.policy.checkpoint}: ${checkpoint.config.modelType}, ${checkpoint.config.layers} layers`,
    `tasks: ${counts[0]} for training, ${counts[1]} for evaluation`,
    `harness ${run.rollout.harness}`,
    `disk at ${place}`,
  ];
}

function assertSplit(
  site: SiteConfig,
  index: ReturnType<typeof readTaskIndex>,
  split: string,
  run: RunConfig,
): number {
  const entries = index.filter((entry) => entry.split === split);
  const isNeeded = split === run.tasks.train ? run.trainer.steps > 0 : run.evaluation.attempts > 0;
  if (entries.length === 0 && isNeeded) {
    throw new MortiseError({
      code: "MORTISE_TASK_UNKNOWN",
      message: `The index of ${site.tasks.directory} has no task in the split ${split}.`,
      detail: { field: split === run.tasks.train ? "tasks.train" : "tasks.evaluate" },
    });
  }
  for (const entry of entries) loadIndexedTask(site.tasks.directory, entry);
  return entries.length;
}

function assertFile(path: string, field: string): void {
  if (existsSync(path)) return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${field} is ${path}, which does not exist.`,
    detail: { field },
  });
}
