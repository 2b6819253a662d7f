/**
 * Owns finding a run's records: on the bus of a site, on that of a quick start that goes on, else in the archive it
 * left. Does not start a bus.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { readSiteConfig } from "@mortise/kernel";
import { runPaths } from "../quickstart/run-directory.js";
import { projectPaths } from "../site/project-paths.js";
import { connectIfUp } from "../site-bus.js";
import { type RunVerdicts, readArchivedVerdicts, readVerdicts } from "./run-verdicts.js";

export interface RunPlace {
  /** Site file; that of the quick start when absent. */
  readonly site?: string;
  /** Archive directory to read instead of the bus. */
  readonly archive?: string;
}

export interface OpenedRun {
  readonly records: RunVerdicts;
  readonly site: SiteConfig;
  /** Where the records came from. */
  readonly source: "bus" | "archive";
}

/**
 * Calls `act` with a run's records; what it reads of them must be read before it returns.
 * @throws MORTISE_OPERATOR_RUN_UNKNOWN when nothing is recorded of the run
 */
export async function withRun<T>(
  run: string,
  { site: siteFile, archive }: RunPlace,
  act: (opened: OpenedRun) => Promise<T>,
): Promise<T> {
  const site = await readSiteConfig(siteFile ?? quickstartSite(run));
  const bus = archive === undefined ? await connectIfUp(site) : undefined;
  if (bus === undefined) {
    const records = await readArchivedVerdicts(archive ?? archiveOf(site), run);
    return act(known({ site, records, source: "archive" }));
  }
  try {
    return await act(known({ site, records: await readVerdicts(bus, run), source: "bus" }));
  } finally {
    await bus.close();
  }
}

function known(opened: OpenedRun): OpenedRun {
  const { verdicts, trials, run } = opened.records;
  if (verdicts.size > 0 || trials.size > 0) return opened;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_RUN_UNKNOWN",
    message: `Nothing is recorded of run ${run}.`,
    fix: "Name a run of this site; --archive names the directory of an archive.",
    detail: { field: "run" },
  });
}

function quickstartSite(run: string): string {
  const { site } = runPaths(projectPaths(), run);
  if (existsSync(site)) return site;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_RUN_UNKNOWN",
    message: `There is no quick start ${run}.`,
    fix: "Name the site file of the run with --site.",
    detail: { field: "run" },
  });
}

function archiveOf(site: SiteConfig): string {
  return site.archiver.directory ?? join(site.state.directory, "archive");
}
