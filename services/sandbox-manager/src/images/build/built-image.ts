/**
 * Owns the marks of built images at the engine, and finding and removing by them: whatever carries the label of a state
 * directory was built for it, also the steps of builds that failed. Does not build.
 */
import type Docker from "dockerode";
import { ignoreMissing } from "../../backend/docker/engine.js";

/** Value: the mark of the state directory that had it built. */
export const BUILT_LABEL = "io.mortise.built";
/** Id of the image from outside that a stage starts from. */
export const BASE_LABEL = "io.mortise.base";
export const BUILT_REPOSITORY = "mortise-task";

export interface BuiltImage {
  readonly id: string;
  /** Absent for what a build left that has not ended well. */
  readonly name?: string;
  /** Beyond the base it stands on. */
  readonly bytes: number;
  /** Epoch ms. */
  readonly usedAtMs: number;
}

/** Of one owner: task images, and what failed builds left. */
export async function builtImages(docker: Docker, owner: string): Promise<BuiltImage[]> {
  const label = [`${BUILT_LABEL}=${owner}`];
  const listed = await Promise.all([
    docker.listImages({ filters: { reference: [`${BUILT_REPOSITORY}:*.${owner}`] } }),
    docker.listImages({ filters: { label, dangling: ["true"] } }),
  ]);
  const found: BuiltImage[] = [];
  for (const { Id: id, RepoTags, Created, Size, Labels } of listed.flat()) {
    const name = RepoTags?.find((tag) => tag.endsWith(`.${owner}`));
    const usedAtMs = name === undefined ? Created * 1000 : await lastTagged(docker, id, Created);
    const bytes = Size - (await sizeOf(docker, Labels?.[BASE_LABEL]));
    found.push({ id, bytes, usedAtMs, ...(name === undefined ? {} : { name }) });
  }
  return found;
}

async function sizeOf(docker: Docker, base: string | undefined): Promise<number> {
  if (base === undefined) return 0;
  return (await inspected(docker, base))?.Size ?? 0;
}

/** Undefined when the engine has no image of that name or id. */
export async function inspected(docker: Docker, name: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await docker.getImage(name).inspect();
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return undefined;
    throw error;
  }
}

/**
 * Says that an owner uses an image now. Each has a name of its own for it beside the one it is found by, and the image
 * stays until the last has given it up.
 */
export async function useBuiltImage(docker: Docker, key: string, owner: string): Promise<void> {
  await docker.getImage(`${BUILT_REPOSITORY}:${key}`).tag({ repo: BUILT_REPOSITORY, tag: `${key}.${owner}` });
}

/** With the steps below it that no other image stands on. One in use by a container, or by another owner, stays. */
export async function removeBuiltImage(docker: Docker, { id, name }: BuiltImage): Promise<void> {
  await docker
    .getImage(name ?? id)
    .remove()
    .catch(ignoreMissing);
  const shared = name?.slice(0, name.lastIndexOf("."));
  if (shared === undefined || (await inspected(docker, shared))?.RepoTags.length !== 1) return;
  await docker.getImage(shared).remove().catch(ignoreMissing);
}

async function lastTagged(docker: Docker, id: string, created: number): Promise<number> {
  const { Metadata } = (await docker.getImage(id).inspect()) as { Metadata?: { LastTagTime?: string } };
  const at = Date.parse(Metadata?.LastTagTime ?? "");
  return Number.isNaN(at) ? created * 1000 : Math.max(at, created * 1000);
}
