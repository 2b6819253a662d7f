/** Owns `mortise check`: what a site and a run file resolve to, and whether they can work here. */
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { readRunConfig, readSiteConfig } from "@mortise/kernel";
import type { Command } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { preflight } from "../preflight.js";
import { managerWarnings, withManagersOf } from "../sandbox-managers.js";

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
      const warnings = await warningsOf(site);
      printResult(output(), { site, run, checked, warnings }, () => [
        JSON.stringify({ site, run }, undefined, 2),
        ...checked.map((line) => `ok  ${line}`),
        ...warnings.map((line) => `!!  ${line}`),
      ]);
    });
}

/** Of sandbox-managers that are up already. A site whose services are not is no less right. */
async function warningsOf(site: SiteConfig): Promise<string[]> {
  try {
    return await withManagersOf(site, managerWarnings);
  } catch (error) {
    if (error instanceof MortiseError) return [];
    throw error;
  }
}
