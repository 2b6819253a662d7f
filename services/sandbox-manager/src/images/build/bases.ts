/**
 * Owns what base images are resolved to: the engine's own when it has them under that name, else fetched from their
 * registry as any image is (mirrors, logins, digests verified) and handed to the engine. The builder never asks a
 * registry itself.
 */
import { MortiseError } from "@mortise/contracts";
import type Docker from "dockerode";
import { followed } from "../../backend/docker/engine.js";
import { savedArchive } from "../../backend/docker/saved-archive.js";
import { hostPlatform } from "../manifest.js";
import { formatReference, parseReference } from "../reference.js";
import { findInRegistry, type RegistryOptions } from "../registry/registry-source.js";
import { inspected } from "./built-image.js";

export interface ResolvedBase {
  /** As the Dockerfile has it, variables replaced. */
  readonly reference: string;
  /** `sha256:<hex>` of the configuration: what the build starts from. */
  readonly imageId: string;
  /** Of the manifest, where it is known. */
  readonly digest?: string;
  /** What it brings along for those who build on it. */
  readonly triggers: readonly string[];
}

const REPOSITORY = "mortise-base";

/** Rejects as registries do, or with MORTISE_SANDBOX_IMAGE_BUILD when the engine does not take the image. */
export async function resolveBase(
  docker: Docker,
  reference: string,
  registry: RegistryOptions,
  signal: AbortSignal,
): Promise<ResolvedBase> {
  const parsed = parseReference(reference);
  const asWritten = parsed.digest === undefined ? reference : formatReference(parsed);
  const earlier = parsed.digest === undefined ? undefined : nameOf(parsed.digest);
  const there =
    (await inspected(docker, asWritten)) ??
    (earlier === undefined ? undefined : await inspected(docker, earlier));
  if (there !== undefined) {
    const known = there.RepoDigests?.map((one) => one.split("@")[1]).find((one) => one !== undefined);
    return resolved(reference, there, parsed.digest ?? known);
  }
  const found = await findInRegistry(parsed, hostPlatform(), registry, signal);
  const name = nameOf(parsed.digest ?? found.digest);
  if ((await inspected(docker, name)) === undefined)
    await followed(docker, await docker.loadImage(savedArchive(found, name))).catch((cause: Error) => {
      throw notTaken(reference, cause.message, cause);
    });
  const loaded = await inspected(docker, name);
  if (loaded === undefined) throw notTaken(reference, "it is not there after it was loaded");
  return resolved(reference, loaded, parsed.digest ?? found.digest);
}

function nameOf(digest: string): string {
  return `${REPOSITORY}:${digest.replace("sha256:", "")}`;
}

function resolved(
  reference: string,
  image: Docker.ImageInspectInfo,
  digest: string | undefined,
): ResolvedBase {
  const { OnBuild } = image.Config as { OnBuild?: string[] | null };
  return {
    reference,
    imageId: image.Id,
    triggers: OnBuild ?? [],
    ...(digest === undefined ? {} : { digest }),
  };
}

function notTaken(reference: string, why: string, cause?: Error): MortiseError {
  return new MortiseError({
    code: "MORTISE_SANDBOX_IMAGE_BUILD",
    message: `base image ${reference}: the engine does not take it: ${why}`,
    ...(cause === undefined ? {} : { cause }),
  });
}
