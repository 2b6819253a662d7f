/**
 * Owns what a starting trainer does with what an earlier one left behind (DESIGN §6): the KV wins; a newer
 * checkpoint on disk is published only if it was computed from the current version and its compare-and-set
 * succeeds. Does not train.
 */
import { MortiseError } from "@mortise/contracts";
import type { Checkpoint, CheckpointStore } from "./checkpoint-store.js";
import type { Current, Publication } from "./publication.js";

export interface Recovered {
  readonly current: Current;
  readonly checkpoint: Checkpoint;
}

/** The version to go on from, or undefined for a run that has none yet. */
export async function recover(
  store: CheckpointStore,
  publication: Publication,
): Promise<Recovered | undefined> {
  await store.prepare();
  const current = await publication.current();
  if (!current) return await publishFirst(store, publication);
  const version = Number(current.manifest.version);
  const checkpoint = await store.read(version);
  if (checkpoint.facts.sha256 !== current.manifest.sha256) {
    throw unusable(version, "the checkpoint on disk has other weights than the published version");
  }
  const next = await newer(store, version, current.manifest.sha256);
  if (!next) return { current, checkpoint };
  return { current: await publication.publish(next, current), checkpoint: next };
}

/** Version 0 was stored and not published, or nothing happened yet. */
async function publishFirst(
  store: CheckpointStore,
  publication: Publication,
): Promise<Recovered | undefined> {
  const newest = (await store.versions()).at(-1);
  if (newest === undefined) return undefined;
  if (newest > 0)
    throw unusable(newest, "there are checkpoints on disk, but the run has no published version");
  const checkpoint = await store.read(0);
  return { current: await publication.publish(checkpoint, undefined), checkpoint };
}

/** The stored successor of `version`; anything newer that does not follow from it is removed. */
async function newer(
  store: CheckpointStore,
  version: number,
  sha256: string,
): Promise<Checkpoint | undefined> {
  let found: Checkpoint | undefined;
  for (const candidate of await store.versions()) {
    if (candidate <= version) continue;
    const checkpoint = candidate === version + 1 ? await store.read(candidate) : undefined;
    if (checkpoint?.facts.baseSha256 === sha256) found = checkpoint;
    else await store.remove(candidate);
  }
  return found;
}

function unusable(version: number, why: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_TRAINER_CHECKPOINT",
    message: `Version ${version}: ${why}.`,
    detail: { version },
  });
}
