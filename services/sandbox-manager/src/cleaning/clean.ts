/**
 * Owns removing what Mortise owns on this host and has finished with: what dead managers left, and caches that are old
 * or too large. Knows nothing of runs, streams or checkpoints.
 *
 * C1  What a live process claims is not touched: the claim is taken before anything is removed.
 * C2  Leases in the journal stay: the next manager reports them lost, and then removes them.
 */
import { existsSync, rmSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import { DockerBackend } from "../backend/docker/backend.js";
import type { EngineSettings } from "../backend/docker/engine.js";
import { KubernetesBackend } from "../backend/kubernetes/backend.js";
import type { KubernetesSettings } from "../backend/kubernetes/settings.js";
import { liveOwner } from "../backend/owner.js";
import { ProcessBackend } from "../backend/process/backend.js";
import { RuncBackend } from "../backend/runc/backend.js";
import type { BackendName, SandboxBackend, SweepReport } from "../backend/types.js";
import { type CacheEntry, cacheEntries, dispensable, removeEntry } from "./cache-entries.js";
import { cleanEngineImages } from "./engine-images.js";
import { leftovers } from "./leftovers.js";

export interface CleanOptions {
  /** Of a sandbox-manager: `<state.directory>/sandbox-manager`. */
  readonly stateDirectory: string;
  /** Looks and says what would be removed. */
  readonly isDryRun: boolean;
  /** Cache entries unused for longer go. */
  readonly maxAgeMs: number;
  /** Of the caches of one backend; the oldest go first. */
  readonly maxBytes: number;
  readonly runc: string;
  /** The Docker engine its sandboxes and builds were at; the one of this host when absent. */
  readonly engine?: EngineSettings;
  /** The cluster its sandboxes were in; that backend's place is left alone when absent. */
  readonly kubernetes?: KubernetesSettings;
  /** Epoch ms. */
  readonly now: number;
}

export interface CleanedPlace {
  readonly directory: string;
  readonly backend: BackendName;
  /** cleaned: by this call, or it would be (dry run). claimed, unavailable: nothing was touched; `reason` says why. */
  readonly state: "cleaned" | "claimed" | "unavailable";
  readonly reason?: string;
  readonly leftovers?: SweepReport;
  /** What goes from the caches, and what stays. */
  readonly removed: { readonly entries: number; readonly bytes: number };
  readonly kept: { readonly entries: number; readonly bytes: number };
  /** Of what was built at a Docker engine for it; absent where none answers, and where nothing was touched. */
  readonly images?: Record<"removed" | "kept", { readonly entries: number; readonly bytes: number }>;
}

const BACKENDS: readonly BackendName[] = ["runc", "docker", "process", "kubernetes"];
/** Repositories on their way out of a root filesystem, and diffs that are being applied for grading. */
const HALF_DONE = ["histories", "diffs"];

export async function clean(options: CleanOptions): Promise<CleanedPlace[]> {
  const places: CleanedPlace[] = [];
  for (const backend of BACKENDS) {
    const directory = path.join(options.stateDirectory, backend);
    if (existsSync(directory)) places.push(await cleanBackend(backend, directory, options));
  }
  const isFree = places.every(({ state }) => state === "cleaned");
  if (isFree && !options.isDryRun)
    for (const name of HALF_DONE)
      rmSync(path.join(options.stateDirectory, name), { recursive: true, force: true });
  return places;
}

async function cleanBackend(
  name: BackendName,
  directory: string,
  options: CleanOptions,
): Promise<CleanedPlace> {
  const untouched = (state: "claimed" | "unavailable", reason: string): CleanedPlace => ({
    directory,
    backend: name,
    state,
    reason,
    removed: sizeOf([]),
    kept: sizeOf(cacheEntries(directory)),
  });
  const owner = liveOwner(directory);
  if (owner !== undefined) return untouched("claimed", `process ${owner} uses it`);
  if (options.isDryRun)
    return {
      ...described(name, directory, await leftovers(name, directory, options), options),
      ...(await imagesOf(directory, options)),
    };
  const backend = backendOf(name, directory, options);
  if (backend === undefined) return untouched("unavailable", "no cluster is configured");
  const availability = await backend.availability();
  if (!availability.ok) return untouched("unavailable", availability.reason);
  try {
    const swept = await backend.start(); // C1
    const place = described(name, directory, swept, options);
    for (const entry of goingOf(directory, options)) removeEntry(entry);
    const images = await imagesOf(directory, options);
    await backend.stop();
    return { ...place, ...images };
  } catch (error) {
    if (!(error instanceof MortiseError) || error.code !== "MORTISE_SANDBOX_STATE_IN_USE") throw error;
    return untouched("claimed", error.message);
  }
}

function described(
  backend: BackendName,
  directory: string,
  found: SweepReport,
  options: CleanOptions,
): CleanedPlace {
  const going = goingOf(directory, options);
  const staying = cacheEntries(directory).filter(
    (entry) => !going.some(({ path: gone }) => gone === entry.path),
  );
  return {
    directory,
    backend,
    state: "cleaned",
    leftovers: found,
    removed: sizeOf(going),
    kept: sizeOf(staying),
  };
}

function goingOf(directory: string, { now, maxAgeMs, maxBytes }: CleanOptions): CacheEntry[] {
  return dispensable(cacheEntries(directory), { now, maxAgeMs, maxBytes });
}

async function imagesOf(directory: string, options: CleanOptions): Promise<Pick<CleanedPlace, "images">> {
  const images = await cleanEngineImages(directory, options);
  return images === undefined
    ? {}
    : { images: { removed: sizeOf(images.removed), kept: sizeOf(images.kept) } };
}

function sizeOf(entries: readonly Pick<CacheEntry, "bytes">[]): { entries: number; bytes: number } {
  return { entries: entries.length, bytes: entries.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function backendOf(
  name: BackendName,
  stateDirectory: string,
  { runc, engine, kubernetes }: Pick<CleanOptions, "runc" | "engine" | "kubernetes">,
): SandboxBackend | undefined {
  switch (name) {
    case "runc":
      return new RuncBackend({ stateDirectory, runc });
    case "docker":
      return new DockerBackend({ stateDirectory, ...(engine === undefined ? {} : { engine }) });
    case "process":
      return new ProcessBackend({ stateDirectory, warn: () => {} });
    case "kubernetes":
      return kubernetes === undefined
        ? undefined
        : new KubernetesBackend({ stateDirectory, settings: kubernetes });
  }
}
