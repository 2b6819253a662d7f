/** Owns opening a run's verdicts, with the site they belong to, wherever its records are (records/run-source.ts). */
import type { SiteConfig } from "@mortise/contracts";
import { type RunPlace, unknownRun, withRunSource } from "../records/run-source.js";
import { type RunVerdicts, readArchivedVerdicts, readVerdicts } from "./run-verdicts.js";

export interface OpenedRun {
  readonly records: RunVerdicts;
  readonly site: SiteConfig;
  /** Where the records came from. */
  readonly source: "bus" | "archive";
}

/**
 * Calls `act` with a run's records; what it reads of them must be read before it returns.
 * @throws MORTISE_OPERATOR_RUN_UNKNOWN when nothing is recorded of the run, or its site is not known
 */
export function withRun<T>(run: string, place: RunPlace, act: (opened: OpenedRun) => Promise<T>): Promise<T> {
  return withRunSource(run, place, async ({ site, records: at }) => {
    if (site === undefined) throw unknownRun(run);
    const records =
      at.kind === "bus" ? await readVerdicts(at.bus, run) : await readArchivedVerdicts(at.directory, run);
    if (records.verdicts.size === 0 && records.trials.size === 0) throw unknownRun(run);
    return act({ records, site, source: at.kind });
  });
}
