/**
 * Owns finding a run's records: on the bus of a site or of a quick start while it answers, else in the archive it left.
 * Does not start a bus and does not read the streams (run-records.ts).
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type DescMessage, fromJson, type JsonValue, type MessageShape } from "@bufbuild/protobuf";
import { readArchive } from "@mortise/archiver";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { type Bus, readSiteConfig } from "@mortise/kernel";
import { runPaths } from "../quickstart/run-directory.js";
import { projectPaths } from "../site/project-paths.js";
import { connectIfUp } from "../site-bus.js";

export interface RunPlace {
  /** Site file; that of the quick start when absent. */
  readonly site?: string | undefined;
  /** Archive directory to read instead of the bus. */
  readonly archive?: string | undefined;
}

export interface RunSource {
  /** Undefined for an archive that was named without a site. */
  readonly site: SiteConfig | undefined;
  readonly records:
    | { readonly kind: "bus"; readonly bus: Bus }
    | { readonly kind: "archive"; readonly directory: string };
}

/**
 * Calls `act` with where a run's records are; what it reads of them must be read before it resolves.
 * @throws MORTISE_OPERATOR_RUN_UNKNOWN when there is neither a site nor an archive to look into
 */
export async function withRunSource<T>(
  run: string,
  { site: siteFile = quickstartSite(run), archive }: RunPlace,
  act: (source: RunSource) => Promise<T>,
): Promise<T> {
  const site = siteFile === undefined ? undefined : await readSiteConfig(siteFile);
  const bus = archive === undefined && site !== undefined ? await connectIfUp(site) : undefined;
  if (bus === undefined) {
    const directory = archive ?? (site && archiveOf(site));
    if (directory === undefined) throw unknownRun(run);
    return await act({ site, records: { kind: "archive", directory } });
  }
  try {
    return await act({ site, records: { kind: "bus", bus } });
  } finally {
    await bus.close();
  }
}

export function unknownRun(run: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_OPERATOR_RUN_UNKNOWN",
    message: `Nothing is recorded of a run ${run}.`,
    fix: "Name a run of this site; --site names the site file of another, --archive the directory of an archive.",
    detail: { field: "runId" },
  });
}

/**
 * The messages of one table of an archive with their sequence on their stream, in that order. Fields of a newer version
 * mean nothing here and are passed over.
 */
export async function archivedMessages<D extends DescMessage>(
  directory: string,
  run: string,
  { table, schema }: { readonly table: string; readonly schema: D },
): Promise<{ message: MessageShape<D>; sequence: bigint }[]> {
  return (await readArchive(directory, run, table)).map(({ record, sequence }) => ({
    message: fromJson(schema, record as JsonValue, { ignoreUnknownFields: true }),
    sequence: BigInt(sequence as bigint),
  }));
}

function quickstartSite(run: string): string | undefined {
  const { site } = runPaths(projectPaths(), run);
  return existsSync(site) ? site : undefined;
}

function archiveOf({ archiver, state }: SiteConfig): string {
  return archiver.directory ?? join(state.directory, "archive");
}
