/**
 * Owns finding a usable NATS server: the one NATS_URL names, one on PATH, the project's cache, then each source
 * in turn into the cache. Tells every step that was passed over with its reason.
 * Does not start the server (see quickstart/).
 *
 * P1  A server given by the operator is never silently replaced: too old or unreachable is an error.
 * P2  The cache holds a whole, working binary or nothing: it is filled by one rename after a version check.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { Source } from "./source.js";
import { SOURCES } from "./sources.js";
import { binaryVersion, isUsable, MINIMUM, readGreeting } from "./version.js";

export type NatsServer =
  | {
      readonly kind: "running";
      readonly url: string;
      readonly version: string;
      readonly notes: readonly string[];
    }
  | {
      readonly kind: "binary";
      readonly path: string;
      readonly version: string;
      /** "PATH", "cache", or the name of the source it was just obtained from. */
      readonly source: string;
      readonly notes: readonly string[];
    };

export interface ProvisionOptions {
  /** `.mortise/cache`, absolute. */
  readonly cacheDirectory: string;
  readonly environment?: { readonly NATS_URL?: string | undefined; readonly PATH?: string | undefined };
  readonly sources?: readonly Source[];
  /** Told what is being tried, for people who wait. */
  readonly onProgress?: (line: string) => void;
}

/** Rejects with MORTISE_OPERATOR_NATS_TOO_OLD, MORTISE_OPERATOR_NATS_MISSING or MORTISE_TRANSPORT_UNAVAILABLE. */
export async function provisionNatsServer(options: ProvisionOptions): Promise<NatsServer> {
  const environment = options.environment ?? process.env;
  if (environment.NATS_URL) return assertRunning(environment.NATS_URL);

  const notes: string[] = [];
  const onPath = await fromPath(environment.PATH ?? "", notes);
  if (onPath !== undefined) return { kind: "binary", ...onPath, source: "PATH", notes };

  const cached = join(options.cacheDirectory, "nats-server", "nats-server");
  const inCache = await fromCache(cached, notes);
  if (inCache !== undefined) return { kind: "binary", ...inCache, source: "cache", notes };

  for (const source of options.sources ?? SOURCES) {
    options.onProgress?.(`nats-server: trying ${source.name}`);
    try {
      const version = await fillCache(source, options.cacheDirectory, cached);
      return { kind: "binary", path: cached, version, source: source.name, notes };
    } catch (error) {
      notes.push(`${source.name}: ${(error as Error).message}`);
    }
  }
  throw new MortiseError({
    code: "MORTISE_OPERATOR_NATS_MISSING",
    message: notes.map((note) => `\n  - ${note}`).join(""),
    detail: { field: "nats-server", tried: notes },
  });
}

async function assertRunning(url: string): Promise<NatsServer> {
  const { version, jetstream } = await readGreeting(url);
  const refuse = (reason: string, fix: string) =>
    new MortiseError({
      code: "MORTISE_OPERATOR_NATS_TOO_OLD",
      message: reason,
      fix,
      detail: { field: "NATS_URL" },
    });
  if (!isUsable(version)) {
    // P1
    throw refuse(
      `NATS_URL names a server of version ${version}; streams need ${MINIMUM} or newer.`,
      `Upgrade it to ${MINIMUM} or newer, or unset NATS_URL to have one started.`,
    );
  }
  if (!jetstream) {
    throw new MortiseError({
      code: "MORTISE_TRANSPORT_UNAVAILABLE",
      message: "The server that NATS_URL names runs without JetStream.",
      fix: "Start it with JetStream enabled (`nats-server -js`), or unset NATS_URL.",
      detail: { field: "NATS_URL" },
    });
  }
  const note =
    "NATS_URL: the operator's server; its own users and permissions apply, not one user per service";
  return { kind: "running", url, version, notes: [note] };
}

async function fromPath(
  path: string,
  notes: string[],
): Promise<{ path: string; version: string } | undefined> {
  const candidate = path
    .split(delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => join(directory, "nats-server"))
    .find((file) => existsSync(file));
  if (candidate === undefined) {
    notes.push("PATH: no nats-server");
    return undefined;
  }
  return usable(candidate, "PATH", notes);
}

async function fromCache(
  cached: string,
  notes: string[],
): Promise<{ path: string; version: string } | undefined> {
  return existsSync(cached) ? usable(cached, "cache", notes) : undefined;
}

async function usable(
  path: string,
  where: string,
  notes: string[],
): Promise<{ path: string; version: string } | undefined> {
  try {
    const version = await binaryVersion(path);
    if (isUsable(version)) return { path, version };
    notes.push(`${where}: ${path} is ${version}, older than ${MINIMUM}; skipped`);
  } catch (error) {
    notes.push(`${where}: ${path} does not run (${(error as Error).message}); skipped`);
  }
  return undefined;
}

async function fillCache(source: Source, cacheDirectory: string, cached: string): Promise<string> {
  const work = join(cacheDirectory, `.nats-server-${process.pid}`);
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  try {
    const binary = await source.obtain(work);
    const version = await binaryVersion(binary);
    if (!isUsable(version)) throw new Error(`it holds version ${version}, older than ${MINIMUM}`);
    await mkdir(join(cached, ".."), { recursive: true });
    const staged = `${cached}.${process.pid}`;
    await copyFile(binary, staged);
    await rename(staged, cached); // P2
    return version;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
