/**
 * Owns removing what was built at the Docker engine for a state directory: task images nobody used for long, and what
 * failed builds left. What others built, and base images, are not ours to remove.
 */
import { connectEngine, type EngineSettings, engineAddress } from "../backend/docker/engine.js";
import { ownerMark } from "../backend/owner.js";
import { type BuiltImage, builtImages, removeBuiltImage } from "../images/build/built-image.js";
import { dispensable } from "./cache-entries.js";

export interface CleanedImages {
  readonly removed: readonly BuiltImage[];
  readonly kept: readonly BuiltImage[];
}

/** Undefined where no engine answers: then nothing can be removed through it. */
export async function cleanEngineImages(
  stateDirectory: string,
  limits: {
    now: number;
    maxAgeMs: number;
    maxBytes: number;
    isDryRun: boolean;
    engine?: EngineSettings;
  },
): Promise<CleanedImages | undefined> {
  const address = engineAddress(limits.engine);
  if (!address.ok) return undefined;
  const docker = connectEngine(address);
  const isThere = await docker.ping().then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  const all = await builtImages(docker, ownerMark(stateDirectory));
  const removed = dispensable(all, limits);
  if (!limits.isDryRun) for (const image of removed) await removeBuiltImage(docker, image);
  return { removed, kept: all.filter((image) => !removed.includes(image)) };
}
