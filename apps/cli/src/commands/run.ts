/**
 * Owns `mortise run`: a run on a site whose bus and shared services are up already. It makes what the run stores,
 * supervises the run's own scheduler and trainer on this machine, and stays until the run is finished.
 * Does not start the shared services (see quickstart for everything on one machine).
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { MortiseError, type RunConfig, type SiteConfig } from "@mortise/contracts";
import { type Bus, readRunConfig, readSiteConfig, sleep } from "@mortise/kernel";
import type { Command } from "commander";
import { EXIT_FAILURE, note, type OutputOptions, printResult } from "../output.js";
import { preflight } from "../preflight.js";
import { readIdentity } from "../provision/identity.js";
import { ProgressWatch } from "../quickstart/progress.js";
import { failedGates, type Summary, summarise } from "../quickstart/summary.js";
import { LineView, TerminalView, type View } from "../quickstart/view.js";
import { readRunRecords } from "../run-records.js";
import { listenForInterrupts } from "../site/interrupts.js";
import { Presences } from "../site/presences.js";
import { projectPaths } from "../site/project-paths.js";
import { RUN_SERVICES, STOP_ORDER, serviceSpec } from "../site/services.js";
import { connectAs, makeTopology } from "../site-bus.js";
import { Supervisor } from "../supervisor/supervisor.js";

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
      for (const line of await preflight(site, run)) note(`ok  ${line}`);
      const { summary, failed } = await superviseRun(site, run, files);
      printResult(output(), summary, () => [
        `run ${summary.runId}: ${summary.steps} steps, ${summary.trials} trials, solve rate ${summary.solveRate.before} -> ${summary.solveRate.after}`,
      ]);
      for (const reason of failed) note(`gate failed: ${reason}`);
      process.exitCode = failed.length === 0 ? 0 : EXIT_FAILURE;
    });
}

async function superviseRun(
  site: SiteConfig,
  run: RunConfig,
  files: Flags,
): Promise<{ summary: Summary; failed: string[] }> {
  const startedAt = performance.now();
  await makeTopology(site, run.run.id);
  const view = process.stderr.isTTY ? new TerminalView() : new LineView(note);
  const fatal = new AbortController();
  const supervisor = new Supervisor({
    onRestart: (name, reason) => view.note(`${name} ended (${reason}); starting it again`),
    onGaveUp: (name, reason, spec) => fatal.abort(gaveUp(name, reason, spec.errorFile)),
    onFault: (error) => fatal.abort(error),
  });
  const interrupts = listenForInterrupts(() => supervisor.killAll());
  const bus = await connectAs(site, "observer");
  try {
    await startRunServices(supervisor, site, files);
    await follow({
      site,
      run,
      bus,
      supervisor,
      view,
      startedAt,
      signal: AbortSignal.any([fatal.signal, interrupts.signal]),
    });
    const records = await readRunRecords(bus, run.run.id);
    const summary = summarise({
      runId: run.run.id,
      seed: run.run.seed,
      stalenessBound: run.async.maxStaleness,
      records,
      // The site's services work for other runs too; their time is not this run's alone.
      overheadMsPerTrial: null,
      services: supervisor.status().map(({ name, restarts }) => ({ name, restarts })),
      durationMs: Math.round(performance.now() - startedAt),
    });
    return { summary, failed: failedGates(summary, records, run.trainer.steps) };
  } finally {
    view.end();
    await bus.close();
    await supervisor.stopInOrder(STOP_ORDER);
    interrupts.dispose();
  }
}

async function startRunServices(supervisor: Supervisor, site: SiteConfig, files: Flags): Promise<void> {
  const logs = join(site.state.directory, "logs");
  await mkdir(logs, { recursive: true, mode: 0o700 });
  const places = {
    project: projectPaths(),
    directory: site.state.directory,
    logs,
    siteFile: files.site,
    runFile: files.run,
  };
  for (const name of RUN_SERVICES) supervisor.start(serviceSpec(name, places));
}

interface FollowOptions {
  readonly site: SiteConfig;
  readonly run: RunConfig;
  readonly bus: Bus;
  readonly supervisor: Supervisor;
  readonly view: View;
  readonly startedAt: number;
  readonly signal: AbortSignal;
}

async function follow(options: FollowOptions): Promise<void> {
  const { site, run, bus, supervisor, view, startedAt, signal } = options;
  const { bearer } = await readIdentity(site.identity.directory, "observer");
  const presences = await Presences.watch(bus);
  const watch = await ProgressWatch.start({ bus, presences, bearer }, run.run.id);
  try {
    while (!watch.isFinished) {
      await watch.refresh();
      view.update({
        runId: run.run.id,
        steps: run.trainer.steps,
        elapsedMs: performance.now() - startedAt,
        progress: watch.current,
        processes: supervisor.status(),
        stalenessBound: run.async.maxStaleness,
      });
      await Promise.race([watch.finished, sleep(REFRESH_MS, undefined, signal)]);
    }
  } finally {
    await watch.stop();
    await presences.stop();
  }
}

function gaveUp(name: string, reason: string, where: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_SERVICE_DOWN",
    message: `${name}: ${reason}; see ${where}.`,
    detail: { field: name },
  });
}
