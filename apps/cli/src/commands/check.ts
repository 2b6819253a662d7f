/** Owns `mortise check`: what a site and a run file resolve to, and whether they can work here. */
import { readRunConfig, readSiteConfig } from "@mortise/kernel";
import type { Command } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { preflight } from "../preflight.js";

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
