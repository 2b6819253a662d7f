/**
 * Owns which image a task runs in, read from `environment.docker_image`: a registry's, or one in a file beside the
 * task. Does not fetch it and does not build it.
 */
import { realpathSync } from "node:fs";
import path from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import type { ImageSpec } from "../backend/types.js";

/** `oci:` a layout directory, `oci-archive:` a tar of one, `docker-archive:` what `docker save` writes. */
const LOCAL = /^(?:oci|oci-archive|docker-archive):(?<path>[^:]+)(?::(?<name>.+))?$/;

/**
 * Paths are relative to the task's own directory, also where the site has only a link to it. Without an image a task with a repository runs in the host image;
 * undefined for one that has only a Dockerfile: its image has to be built.
 */
export function imageOf({ directory, environment }: Task): ImageSpec | undefined {
  const { dockerImage, repository } = environment;
  if (dockerImage === undefined) return repository === undefined ? undefined : { kind: "host" };
  const { path: place, name } = LOCAL.exec(dockerImage)?.groups ?? {};
  if (place === undefined) return { kind: "registry", reference: dockerImage };
  return {
    kind: "local",
    path: path.resolve(realpathSync(directory), place),
    ...(name === undefined ? {} : { name }),
  };
}

/** What a place without a builder says. Rejects with MORTISE_TASK_INVALID. */
export async function notBuilt({ directory, environment }: Task): Promise<ImageSpec> {
  throw new MortiseError({
    code: "MORTISE_TASK_INVALID",
    message: `${directory}: environment.docker_image is absent, and Dockerfiles are not built here.`,
    fix: `Build ${environment.dockerfile ?? "the image"} and name the result in environment.docker_image, or add environment/repository.`,
    detail: { field: "environment.docker_image" },
  });
}
