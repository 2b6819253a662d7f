/**
 * Owns `mortise status`: where a run is, and its token ledger recomputed from the streams. Needs the run's bus;
 * of a finished quick start whose bus is gone it shows the summary.
 */
import { existsSync, readFileSync } from "node:fs";
import { MortiseError, RunPhase, type SiteConfig } from "@mortise/contracts";
import { type Bus, readSiteConfig } from "@mortise/kernel";
import { type Command, Option } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { type RunPaths, runPaths } from "../quickstart/run-directory.js";
import { recomputedLedger, type Summary } from "../quickstart/summary.js";
import { lostLines } from "../records/lost-trials.js";
import { readRunRecords } from "../records/run-records.js";
import { readRewards } from "../regrade/run-verdicts.js";
import { countsLine, outcomeCounts, standingVerdicts } from "../regrade/standing.js";
import { managerWarnings, withManagers } from "../sandbox-managers.js";
import { observeBus } from "../site/open-site.js";
import { projectPaths } from "../site/project-paths.js";
import { connectIfUp } from "../site-bus.js";

export function addStatus(program: Command, output: () => OutputOptions): void {
  program
    .command("status <runId>")
    .description("where a run is, and where every sampled token went")
    .addOption(
      new Option("--site <file>", "site file of a run that is not a quick start").env("MORTISE_SITE"),
    )
    .action(async (runId: string, { site }: { site?: string }) => {
      if (site !== undefined) return printLiveOn(site, runId, output());
      const paths = runPaths(projectPaths(), runId);
      if (!existsSync(paths.options))
        throw unknown(
          `There is no quick start ${runId}.`,
          "List the runs with `mortise runs list`; name the site of a run on one with --site.",
        );
      const bus = existsSync(paths.site) ? await connectIfUp(await readSiteConfig(paths.site)) : undefined;
      if (bus === undefined) return printStopped(runId, paths, output());
      try {
        await printLive({ bus, site: await readSiteConfig(paths.site) }, runId, output());
      } finally {
        await bus.close();
      }
    });
}

async function printLiveOn(file: string, runId: string, output: OutputOptions): Promise<void> {
  const site = await readSiteConfig(file);
  const bus = await observeBus(site, file);
  try {
    await printLive({ bus, site }, runId, output);
  } finally {
    await bus.close();
  }
}

function unknown(message: string, fix: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_RUN_UNKNOWN",
    message,
    fix,
    detail: { field: "runId" },
  });
}

async function printLive(
  { bus, site }: { bus: Bus; site: SiteConfig },
  runId: string,
  output: OutputOptions,
): Promise<void> {
  const records = await readRunRecords(bus, runId);
  const { phases, seals, groups } = records;
  if (phases.length + seals.length + groups.length + records.endedTrials === 0)
    throw unknown(
      `Nothing is recorded of a run ${runId}.`,
      "Name a run of this site, by run.id of its run file; one that was just started says something soon.",
    );
  const rewards = await readRewards(bus, runId);
  const verdicts = outcomeCounts(standingVerdicts(rewards).values());
  const warnings = await withManagers(bus, site, managerWarnings);
  const { sampled, trained, baselineOnly, excluded, unconsumed } = recomputedLedger(records);
  const excludedTokens = excluded.reduce((sum, { tokens }) => sum + Number(tokens), 0);
  const tokens = {
    sampled: Number(sampled),
    trained: Number(trained),
    baselineOnly: Number(baselineOnly),
    excluded: excludedTokens,
    unconsumed: Number(unconsumed),
  };
  const phase = RunPhase[records.phases.at(-1)?.phase ?? RunPhase.UNSPECIFIED];
  const status = {
    runId,
    phase,
    steps: records.steps.length,
    trials: records.endedTrials,
    groups: records.groups.length,
    tokens,
    verdicts,
    lost: records.lost,
    regraded: rewards.regrades.size,
    warnings,
  };
  printResult(output, status, () => [
    `run ${runId}: ${phase}, ${status.steps} steps, ${status.groups} groups decided, ${status.trials} trials ended`,
    `tokens: ${Object.entries(tokens)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")}`,
    `verdicts: ${countsLine(verdicts)}${rewards.regrades.size === 0 ? "" : ` (${rewards.regrades.size} graded again)`}`,
    ...lostLines(records.lost),
    ...warnings.map((warning) => `warning: ${warning}`),
  ]);
}

function printStopped(runId: string, paths: RunPaths, output: OutputOptions): void {
  if (!existsSync(paths.summary)) {
    printResult(output, { runId, phase: "STOPPED" }, () => [
      `run ${runId} is stopped; continue it with: mortise quickstart --resume ${runId}`,
    ]);
    return;
  }
  const summary = JSON.parse(readFileSync(paths.summary, "utf8")) as Summary;
  printResult(output, { ...summary, phase: "FINISHED" }, () => [
    `run ${runId}: finished, ${summary.steps} steps, ${summary.trials} trials`,
    `tokens: ${Object.entries(summary.tokens)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")}`,
  ]);
}
