/**
 * Owns `mortise clean`: what dead sandbox-managers left on this host and what their caches hold too long, removed and
 * said. What a live manager uses is never touched (the sandbox-manager's own claim decides). Runs are not removed.
 */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { MortiseError, type SiteConfig } from "@mortise/contracts";
import { readSiteConfig } from "@mortise/kernel";
import type { CleanedPlace } from "@mortise/sandbox-manager";
import { type Command, Option } from "commander";
import { type OutputOptions, printResult } from "../output.js";
import { runPaths } from "../quickstart/run-directory.js";
import { projectPaths } from "../site/project-paths.js";

const SERVICE = "sandbox-manager";
const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 7;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

interface Flags {
  readonly site?: string;
  readonly dryRun?: boolean;
  readonly olderThan: string;
  readonly maxBytes?: string;
}

export function addClean(program: Command, output: () => OutputOptions): void {
  program
    .command("clean")
    .description("remove what dead sandbox-managers left on this host, and old entries of their caches")
    .addOption(
      new Option(
        "--site <file>",
        "clean the state directory of this site; without it: of all quick starts",
      ).env("MORTISE_SITE"),
    )
    .option("--dry-run", "only say what would be removed")
    .option("--older-than <days>", "cache entries unused for longer go", String(DEFAULT_DAYS))
    .option("--max-bytes <bytes>", "size the caches of one backend may keep; the oldest entries go first")
    .action(async ({ site, dryRun = false, olderThan, maxBytes }: Flags) => {
      const common = {
        isDryRun: dryRun,
        maxAgeMs: number(olderThan, "--older-than") * DAY_MS,
        maxBytes: maxBytes === undefined ? Number.POSITIVE_INFINITY : number(maxBytes, "--max-bytes"),
        now: Date.now(),
      };
      // Loaded when it is needed: it brings the engines' clients and the C library along.
      const { clean } = await import("@mortise/sandbox-manager");
      const places: CleanedPlace[] = [];
      for (const { directory, sandbox } of await stateDirectories(site)) {
        const { runc, docker, kubernetes } = sandbox;
        places.push(
          ...(await clean({ ...common, stateDirectory: directory, runc, engine: docker, kubernetes })),
        );
      }
      const freedBytes = places.reduce(
        (sum, { removed, images }) => sum + removed.bytes + (images?.removed.bytes ?? 0),
        0,
      );
      printResult(output(), { dryRun, freedBytes, places }, () =>
        places.length === 0
          ? ["there is nothing here that Mortise made"]
          : [...places.map((place) => line(place, dryRun)), total(freedBytes, dryRun)],
      );
    });
}

interface StateDirectory {
  readonly directory: string;
  readonly sandbox: SiteConfig["sandbox"];
}

async function stateDirectories(site: string | undefined): Promise<StateDirectory[]> {
  if (site !== undefined) {
    const { state, sandbox } = await readSiteConfig(site);
    return [{ directory: path.join(state.directory, SERVICE), sandbox }];
  }
  const project = projectPaths();
  if (!existsSync(project.runs)) return [];
  const found: StateDirectory[] = [];
  for (const runId of readdirSync(project.runs).sort()) {
    const paths = runPaths(project, runId);
    if (!existsSync(paths.site)) continue;
    const { sandbox } = await readSiteConfig(paths.site);
    found.push({ directory: path.join(paths.state, SERVICE), sandbox });
  }
  return found;
}

function line(
  { directory, state, reason, leftovers, removed, kept, images }: CleanedPlace,
  isDryRun: boolean,
): string {
  if (state !== "cleaned") return `${directory}: left alone, ${reason}`;
  const found = Object.entries(leftovers ?? {}).filter(([, count]) => count > 0);
  const left = found.map(([name, count]) => `${count} ${name}`).join(", ") || "nothing left behind";
  const counts = (what: Pick<CleanedPlace, "removed" | "kept">) =>
    `${what.removed.entries} (${size(what.removed.bytes)}) ${isDryRun ? "would go" : "gone"}, ${what.kept.entries} (${size(what.kept.bytes)}) stay`;
  const nBuilt = images === undefined ? 0 : images.removed.entries + images.kept.entries;
  const built = nBuilt > 0 ? `; built images: ${counts(images!)}` : "";
  return `${directory}: ${left}${found.length > 0 ? (isDryRun ? " to remove" : " removed") : ""}; cache entries: ${counts({ removed, kept })}${built}`;
}

function total(bytes: number, isDryRun: boolean): string {
  return isDryRun ? `${size(bytes)} would be freed` : `${size(bytes)} freed`;
}

function size(bytes: number): string {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return `${(bytes / 1024 ** unit).toFixed(unit === 0 ? 0 : 1)} ${UNITS[unit]}`;
}

function number(text: string, field: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value >= 0) return value;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_USAGE",
    message: `${field} is ${JSON.stringify(text)}; it must be a number, 0 or more.`,
    detail: { field },
  });
}
