/**
 * Owns `mortise run`: a run on a site whose bus and shared services are up already. It makes what the run stores,
 * supervises the run's own scheduler and trainer on this machine, and stays until the run is finished.
 * Does not start the shared services (see commands/site.ts).
 */
import { resolve } from "node:path";
import { MortiseError, type RunConfig, RunPhase, type SiteConfig } from "@mortise/contracts";
import { readRunConfig, readSiteConfig, sleep } from "@mortise/kernel";
import type { Command } from "commander";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import { preflight } from "../preflight.js";
import { ProgressWatch } from "../quickstart/progress.js";
import { failedGates, type Summary, summarise } from "../quickstart/summary.js";
import { LineView, TerminalView, type View } from "../quickstart/view.js";
import { type LostTrials, lostLines } from "../records/lost-trials.js";
import { readRunRecords } from "../records/run-records.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { type OpenSite, openSite } from "../site/open-site.js";
import { RunProcesses } from "../site/processes/run-processes.js";
import { makeTopology } from "../site-bus.js";

const REFRESH_MS = 1_000;

interface Flags {
  readonly site: string;
  readonly run: string;
}

export function addRun(program: Command, output: () => OutputOptions): void {
  program
    .command("run")
    .description(
      "run a run file on a site that is up: supervises its scheduler and trainer until it is finished",
    )
    .requiredOption("--site <file>", "site file")
    .requiredOption("--run <file>", "run file")
    .action(async (flags: Flags) => {
      const files = { site: resolve(flags.site), run: resolve(flags.run) };
      const site = await readSiteConfig(files.site);
      const run = await readRunConfig(files.run);
      assertTrains(run);
      for (const line of await preflight(site, run)) note(`ok  ${line}`);
      const { summary, lost, failed } = await superviseRun(site, run, files);
      printResult(output(), { ...summary, lost }, () => [describe(summary)]);
      for (const line of lostLines(lost)) note(line);
      for (const reason of failed) note(`gate failed: ${reason}`);
      process.exitCode = failed.length === 0 ? 0 : EXIT_FAILURE;
    });
}

function describe({ runId, steps, trials, solveRate, tokens }: Summary): string {
  const shown = (rate: number | null) => rate?.toFixed(3) ?? "not evaluated";
  const rates = `solve rate ${shown(solveRate.before)} -> ${shown(solveRate.after)}`;
  return `run ${runId}: ${steps} steps, ${trials} trials, ${rates}, ${tokens.trained} of ${tokens.sampled} tokens trained`;
}

/** A run without a trainer has an end and a result of another kind. */
function assertTrains({ run }: RunConfig): void {
  if (run.mode === "training") return;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `run.mode is ${run.mode}, and \`mortise run\` trains.`,
    fix: "Use `mortise eval` or `mortise infer`.",
    detail: { field: "run.mode" },
  });
}

async function superviseRun(
  site: SiteConfig,
  run: RunConfig,
  files: Flags,
): Promise<{ summary: Summary; lost: readonly LostTrials[]; failed: string[] }> {
  const startedAt = performance.now();
  const opened = await openSite(files.site);
  const view = process.stderr.isTTY ? new TerminalView() : new LineView(note);
  const absent = opened.absent();
  if (absent.length > 0) view.note(`not up: ${absent.join(", ")}; the run waits for what it needs`);
  const processes = new RunProcesses({
    siteFile: files.site,
    site,
    runFile: files.run,
    note: (line) => view.note(line),
  });
  const interrupts = listenForInterrupts(() => processes.killAll());
  const signal = AbortSignal.any([processes.fatal, interrupts.signal]);
  try {
    await makeTopology(site, run.run.id);
    if (await hasFinished(opened, run.run.id))
      view.note(
        `run ${run.run.id} has finished before: this is what came of it; another run needs another run.id`,
      );
    await processes.start();
    await follow({ run, opened, processes, view, startedAt, signal });
    const services = processes.status().map(({ name, restarts }) => ({ name, restarts }));
    // The weights of the last step end a run, and its record comes behind them: a trainer that drained has published it.
    await processes.stop();
    const records = await readRunRecords(opened.bus, run.run.id);
    const summary = summarise({
      runId: run.run.id,
      seed: run.run.seed,
      stalenessBound: run.async.maxStaleness,
      records,
      // The site's services work for other runs too; their time is not this run's alone.
      overheadMsPerTrial: null,
      services,
      durationMs: Math.round(performance.now() - startedAt),
    });
    const isExact = run.engine.kind === "embedded";
    const failed = failedGates(summary, records, run.trainer.steps, isExact);
    return { summary, lost: records.lost, failed };
  } finally {
    view.end();
    await opened.close();
    await processes.stop();
    interrupts.dispose();
  }
}

async function hasFinished(opened: OpenSite, runId: string): Promise<boolean> {
  const { phases } = await readRunRecords(opened.bus, runId);
  return phases.some(({ phase }) => phase === RunPhase.FINISHED);
}

interface FollowOptions {
  readonly run: RunConfig;
  readonly opened: OpenSite;
  readonly processes: RunProcesses;
  readonly view: View;
  readonly startedAt: number;
  readonly signal: AbortSignal;
}

async function follow({ run, opened, processes, view, startedAt, signal }: FollowOptions): Promise<void> {
  const watch = await ProgressWatch.start(opened, run.run.id);
  try {
    while (!watch.isFinished) {
      await watch.refresh();
      view.update({
        runId: run.run.id,
        steps: run.trainer.steps,
        elapsedMs: performance.now() - startedAt,
        progress: watch.current,
        processes: processes.status(),
        stalenessBound: run.async.maxStaleness,
      });
      await Promise.race([watch.finished, sleep(REFRESH_MS, undefined, signal)]);
    }
  } finally {
    await watch.stop();
  }
}
