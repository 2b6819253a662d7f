/**
 * Owns the harness of a new site: one with an adapter by its name, or a program of somebody's own by a TOML file with
 * what the site file says of a configured command. Starts nothing and obtains nothing.
 */
import { existsSync, statSync } from "node:fs";
import { basename, dirname, extname, resolve } from "node:path";
import { HARNESS_ADAPTERS, type HarnessSettings, SiteConfig } from "@mortise/contracts";
import { loadToml, nearestName, parseStrict } from "@mortise/kernel";
import { z } from "zod";
import { miniHarness } from "../files/mini-harness.js";
import { projectRoot } from "../project-paths.js";
import { underFlag, wrong } from "../refusal.js";

const FLAG = "--harness";
/** The schema's own; a checkpoint with a smaller window needs it said. */
const USUAL_WINDOW = 131_072;
const SMALLEST_WINDOW = 1_024;

export interface SiteHarness {
  /** As runs name it. */
  readonly name: string;
  readonly settings: HarnessSettings;
  /** One with an adapter has a runtime that is mounted into sandboxes. */
  readonly hasRuntime: boolean;
}

export interface HarnessWish {
  readonly given: string;
  readonly backend: string;
  /** Positions of the policy, where a checkpoint was given. */
  readonly windowTokens: number | undefined;
}

/** What runs call the harness that was given by its name or its file. */
export function nameOfHarness(given: string): string {
  return basename(given, extname(given));
}

/** @throws MORTISE_HARNESS_UNKNOWN, MORTISE_HARNESS_UNFIT, MORTISE_CONFIG_* naming --harness */
export async function chooseHarness({ given, backend, windowTokens }: HarnessWish): Promise<SiteHarness> {
  const window = windowOf(windowTokens);
  const adapter = HARNESS_ADAPTERS.find((name) => name === given);
  if (adapter !== undefined) {
    if (backend !== "process") return { name: given, settings: { adapter, ...window }, hasRuntime: true };
    if (adapter === "mini")
      return { name: given, settings: { ...miniHarness(projectRoot), ...window }, hasRuntime: false };
    throw noPlace(given);
  }
  const file = resolve(given);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) {
    const nearest = nearestName(given, HARNESS_ADAPTERS);
    throw wrong(
      FLAG,
      `${given} is neither a harness with an adapter (${HARNESS_ADAPTERS.join(", ")}) nor a file.`,
      `${nearest === undefined ? "" : `Did you mean ${nearest}? `}For a program of your own name a TOML file with its directory and argv: docs/own-tasks.md.`,
      "MORTISE_HARNESS_UNKNOWN",
    );
  }
  return fromFile(file, { backend, window });
}

/** Anything a site file may say of a harness; a relative directory is one beside the file. */
async function fromFile(
  file: string,
  { backend, window }: { readonly backend: string; readonly window: object },
): Promise<SiteHarness> {
  const name = nameOfHarness(file);
  try {
    const table = await loadToml(file);
    const isLocal = table.adapter !== undefined || table.directory !== undefined;
    const settings = { ...(isLocal ? window : {}), ...table };
    const Harnesses = z.strictObject({ harness: SiteConfig.shape.harness });
    parseStrict(Harnesses, { harness: { [name]: settings } }, { source: file });
    const hasRuntime = table.adapter !== undefined;
    if (hasRuntime && backend === "process") throw noPlace(name);
    if (backend === "process" && Object.keys(table.files ?? {}).length > 0)
      throw wrong(
        "files",
        "plain processes have no root of their own to write them below.",
        `Use --backend runc or docker, or put them into directory of ${file}.`,
        "MORTISE_HARNESS_UNFIT",
      );
    if (typeof table.directory !== "string")
      return { name, settings: settings as HarnessSettings, hasRuntime };
    const directory = resolve(dirname(file), table.directory);
    if (!existsSync(directory))
      throw wrong("directory", `${directory} does not exist.`, `Correct directory in ${file}.`);
    return { name, settings: { ...settings, directory } as HarnessSettings, hasRuntime };
  } catch (error) {
    throw underFlag(FLAG, error);
  }
}

function noPlace(harness: string) {
  return wrong(
    FLAG,
    `${harness} needs a runtime mounted into its sandbox, and the process backend has no place for one.`,
    "Use --backend runc or docker, or name a TOML file with a command that is installed on this machine.",
    "MORTISE_HARNESS_UNFIT",
  );
}

/** A harness that believes in a larger window than the policy has never compacts, and its trials end there. */
function windowOf(tokens: number | undefined): { contextTokens?: number; maxOutputTokens?: number } {
  if (tokens === undefined || tokens >= USUAL_WINDOW || tokens < SMALLEST_WINDOW) return {};
  return { contextTokens: tokens, maxOutputTokens: Math.max(1, Math.floor(tokens / 8)) };
}
