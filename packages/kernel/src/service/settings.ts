/**
 * Owns what a service process is told: its command line, the site and run files, its identity.
 * Does not act on any of it.
 */
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { crossChecks, type Identity, MortiseError, RunConfig, SiteConfig } from "@mortise/contracts";
import { z } from "zod";
import { parseStrict } from "../config/parse.js";
import { keysAt } from "../config/schema-keys.js";
import { loadToml, mergeSets, type Table } from "../config/toml.js";
import { fromUnknown } from "../errors.js";
import type { ServiceDefinition } from "./types.js";

export interface Settings {
  readonly instance: string;
  readonly site: SiteConfig;
  readonly run: RunConfig | undefined;
  readonly identity: Identity;
}

const IdentityFile = z.strictObject({
  user: z.string().min(1),
  password: z.string().min(1),
  bearer: z.string().min(1),
});

/** Throws MORTISE_OPERATOR_USAGE and the errors of the configuration. */
export async function readSettings(
  definition: ServiceDefinition,
  argv: readonly string[],
): Promise<Settings> {
  const flags = parseFlags(definition, argv);
  const ownership = flags.sets.map((set) => ({ set, owner: ownerOf(set, flags.run !== undefined) }));
  const setsFor = (owner: "site" | "run") => ownership.filter((o) => o.owner === owner).map((o) => o.set);
  const site = await readConfig(SiteConfig, flags.site, setsFor("site"));
  const run = flags.run === undefined ? undefined : await readRunConfig(flags.run, setsFor("run"));
  const identity = await readIdentity(join(site.identity.directory, `${definition.name}.json`));
  return { instance: flags.instance, site, run, identity };
}

/** A run file with its overrides, checked across fields. */
export async function readRunConfig(path: string, sets: readonly string[] = []): Promise<RunConfig> {
  const run = await readConfig(RunConfig, path, sets);
  const [problem] = crossChecks(run);
  if (problem === undefined) return run;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `${path}: ${problem.field} ${problem.reason}.`,
    detail: { source: path, field: problem.field },
  });
}

/** A site file with its overrides. */
export function readSiteConfig(path: string, sets: readonly string[] = []): Promise<SiteConfig> {
  return readConfig(SiteConfig, path, sets);
}

async function readConfig<S extends z.ZodType>(
  schema: S,
  path: string,
  sets: readonly string[],
): Promise<z.output<S>> {
  const table: Table = mergeSets(await loadToml(path), sets);
  return parseStrict(schema, table, { source: path });
}

async function readIdentity(path: string): Promise<Identity> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? "unreadable";
    throw new MortiseError({
      code: "MORTISE_CONFIG_UNREADABLE",
      message: `identity file ${path}: ${reason}.`,
      fix: "Check identity.directory in the site file; identities are made when a run is started.",
      detail: { field: "identity.directory" },
      cause,
    });
  }
  try {
    return parseStrict(IdentityFile, JSON.parse(text), { source: path });
  } catch (error) {
    // The parser's own message would quote the file, and the file is a secret.
    if (error instanceof SyntaxError) throw fromUnknown("not JSON", "MORTISE_CONFIG_SYNTAX", path);
    if (error instanceof MortiseError)
      throw fromUnknown("needs user, password and bearer", "MORTISE_CONFIG_INVALID", path);
    throw error;
  }
}

interface Flags {
  readonly site: string;
  readonly run: string | undefined;
  readonly sets: readonly string[];
  readonly instance: string;
}

function parseFlags(definition: ServiceDefinition, argv: readonly string[]): Flags {
  const usage = `mortise-${definition.name} --site FILE${definition.needsRun ? " --run FILE" : ""} [--set key=value]… [--instance ID]`;
  const refuse = (reason: string, cause?: unknown) =>
    new MortiseError({
      code: "MORTISE_OPERATOR_USAGE",
      message: `${reason}.`,
      fix: `Usage: ${usage}`,
      cause,
    });
  const options = {
    site: { type: "string" },
    run: { type: "string" },
    set: { type: "string", multiple: true },
    instance: { type: "string" },
  } as const;
  try {
    const { values } = parseArgs({ args: [...argv], options, strict: true });
    if (values.site === undefined) throw refuse("--site is missing");
    if (definition.needsRun && values.run === undefined) throw refuse("--run is missing");
    return {
      site: values.site,
      run: values.run,
      sets: values.set ?? [],
      instance: values.instance ?? defaultInstance(),
    };
  } catch (error) {
    if (error instanceof MortiseError) throw error;
    throw refuse(error instanceof Error ? error.message : String(error), error);
  }
}

function defaultInstance(): string {
  return `${hostname().replaceAll(/[^A-Za-z0-9_-]/g, "-")}-${process.pid}`;
}

/** Both files share the command line; a table in both belongs to the one that knows the key. */
function ownerOf(set: string, hasRun: boolean): "site" | "run" {
  const path = set.split("=", 1)[0]!.trim().split(".");
  const [top] = path;
  const inSite = keysAt(SiteConfig, [], {}).includes(top!);
  const inRun = keysAt(RunConfig, [], {}).includes(top!);
  if (inSite !== inRun) return inSite ? "site" : "run";
  if (!inSite) return hasRun ? "run" : "site";
  return keysAt(SiteConfig, path.slice(0, -1), {}).includes(path.at(-1)!) || !hasRun ? "site" : "run";
}
