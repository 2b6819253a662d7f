/**
 * Owns `mortise compose`: the one-shot steps of docker-compose.yml, before the services start. What they write is
 * compose/; docker itself is not called from here.
 */
import { readSiteConfig } from "@mortise/kernel";
import { type Command, Option } from "commander";
import { writeClusterSite, writeSecrets } from "../compose/cluster-files.js";
import { prepareRun } from "../compose/run-files.js";
import { assertFreeSpace } from "../free-space.js";
import { type OutputOptions, printResult } from "../output.js";
import { DEFAULT_EVAL_ATTEMPTS, DEFAULT_STEPS } from "../quickstart/recipe.js";
import { makeTopology } from "../site-bus.js";
import { wholeNumber } from "./quickstart.js";

interface ProvisionFlags {
  readonly identities: string;
  readonly directory: string;
  readonly runId: string;
  readonly seed: number;
  readonly steps: number;
  readonly evalAttempts: number;
}

export function addCompose(program: Command, output: () => OutputOptions): void {
  const compose = program.command("compose").description("one-shot steps of docker-compose.yml");
  addProvisionStep(compose, output);
  compose
    .command("topology <runId>")
    .description("make the streams, buckets and consumers of a run on the bus")
    .requiredOption("--site <file>", "site file")
    .action(async (runId: string, { site }: { site: string }) => {
      await makeTopology(await readSiteConfig(site), runId);
      printResult(output(), { runId }, () => [`the bus is ready for run ${runId}`]);
    });
}

function addProvisionStep(compose: Command, output: () => OutputOptions): void {
  const number = (flag: string, description: string, variable: string, preset: number) =>
    new Option(flag, description).env(variable).argParser(wholeNumber(0)).default(preset);
  compose
    .command("provision")
    .description("write identities, site file and a run into the volumes of a cluster; keeps what exists")
    .requiredOption("--identities <directory>", "one directory per bus user is written below it")
    .requiredOption("--directory <directory>", "site file, tasks and runs")
    .addOption(new Option("--run-id <id>", "id of the run").env("MORTISE_RUN_ID").default("first"))
    .addOption(number("--seed <n>", "seed of tasks, weights and sampling", "MORTISE_SEED", 1))
    .addOption(number("--steps <n>", "optimiser steps of the run", "MORTISE_STEPS", DEFAULT_STEPS))
    .addOption(
      number(
        "--eval-attempts <n>",
        "held-out attempts of each evaluation",
        "MORTISE_EVAL_ATTEMPTS",
        DEFAULT_EVAL_ATTEMPTS,
      ),
    )
    .action(async (flags: ProvisionFlags) => {
      const { runId, seed, steps, evalAttempts } = flags;
      const directories = { identities: flags.identities, shared: flags.directory };
      await assertFreeSpace(directories.shared);
      const run = await prepareRun(directories.shared, {
        runId,
        seed,
        steps,
        evalAttempts,
        control: false,
        sets: [],
      });
      await writeClusterSite(directories, run.tasksDirectory);
      await writeSecrets(directories);
      printResult(output(), { runId, isNew: run.isNew, directory: run.directory }, () => [
        `run ${runId} is ${run.isNew ? "made" : "there already"}: ${run.directory}`,
      ]);
    });
}
