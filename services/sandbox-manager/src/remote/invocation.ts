/**
 * Owns what a trial is to a remote runtime: the request of a launch. Pure but for packing the work tree. What a remote
 * runtime cannot be given is refused, never left out in silence.
 */
import {
  INVOCATION_SCHEMA,
  type LaunchWork,
  MortiseError,
  ShownTests,
  type SiteConfig,
  type StartInvocation,
} from "@mortise/contracts";
import type { Task } from "@mortise/tasks";
import { packBelow } from "../backend/files.js";
import { limitsFor, patchLimits } from "../limits.js";
import { imageOf } from "../shelf/task-image.js";
import { type ShelvedTask, userOf } from "../shelf/tasks.js";
import { parseModelAddress } from "../trial/reach.js";
import { wishedOf } from "../trial/wishes.js";
import { assertPrivate } from "./bounded-fetch.js";
import type { ConfiguredRemote } from "./remote-harnesses.js";

export interface RemoteOrder {
  readonly work: LaunchWork;
  readonly task: ShelvedTask;
  readonly remote: ConfiguredRemote;
  readonly site: SiteConfig["sandbox"];
  readonly limitMs: number;
}

/** Ids have no dot in them. */
export function invocationId({ run, trial }: Pick<LaunchWork, "run" | "trial">): string {
  return `${run}.${trial}`;
}

/** The token is in there: never log the result. */
export async function invocationOf(order: RemoteOrder): Promise<StartInvocation> {
  const { work, task, remote, site, limitMs } = order;
  const { environment } = task.task;
  const { instruction } = wishedOf(task, work.overrides);
  const limits = limitsFor(site, task.task, { limits: work.limits, overrides: work.overrides });
  const { maxFileBytes, maxTotalBytes } = patchLimits(limits);
  return {
    schema: INVOCATION_SCHEMA,
    kind: "start",
    id: invocationId(work),
    harness: remote.harness,
    instruction,
    model: {
      url: modelUrlOf(work, remote),
      token: work.sessionToken,
      name: work.model,
      listenerKey: work.listenerKey,
    },
    image: remoteImage(task),
    workspace: await workspaceOf(task),
    workdir: task.workdir,
    environment: environment.env,
    user: userOf(task, task.task.agent),
    secrets: [...task.secrets],
    limits: { ...limits, timeoutMs: limitMs, patchFileBytes: maxFileBytes, patchBytes: maxTotalBytes },
  };
}

/** @throws MortiseError MORTISE_HARNESS_UNFIT, MORTISE_SANDBOX_SETUP: what this trial needs and no runtime is given */
export function assertRemotable({ overrides }: LaunchWork, { environment }: Task): void {
  const wish =
    (overrides?.mounts.length ?? 0) > 0
      ? "rollout.mounts"
      : (overrides?.scratch.length ?? 0) > 0
        ? "rollout.scratch"
        : overrides?.shownTests === ShownTests.COPY
          ? "rollout.shownTests"
          : undefined;
  if (wish !== undefined)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_SETUP",
      message: `${wish}: a remote runtime is given no directories and no tests of this site.`,
      fix: `Remove ${wish} from the run file, or use a local harness.`,
    });
  if (environment.healthcheck !== undefined)
    throw new MortiseError({
      code: "MORTISE_HARNESS_UNFIT",
      message: "environment.healthcheck: a remote runtime starts and checks no services of a task.",
      detail: { field: "environment.healthcheck" },
    });
}

function modelUrlOf({ modelAddress }: LaunchWork, { name, settings }: ConfiguredRemote): string {
  const { host, port } = parseModelAddress(modelAddress);
  const url = settings.modelUrl
    .replace("{address}", modelAddress)
    .replace("{host}", host)
    .replace("{port}", String(port))
    .replace(/\/$/, "");
  assertPrivate(url, settings.plainHttp, `harness.${name}.remote.modelUrl`);
  return url;
}

function remoteImage({ task, image }: ShelvedTask): StartInvocation["image"] {
  const spec = imageOf(task);
  if (spec?.kind === "host") return { kind: "host" };
  if (spec?.kind === "registry") return { kind: "registry", reference: spec.reference, digest: image.digest };
  if (spec?.kind === "local")
    return {
      kind: "archive",
      file: spec.path.split("/").at(-1)!,
      ...(spec.name === undefined ? {} : { name: spec.name }),
      digest: image.digest,
    };
  throw new MortiseError({
    code: "MORTISE_HARNESS_UNFIT",
    message: "the task's image is built on this host, where no remote runtime can fetch it.",
    fix: "Push the built image to a registry and name it in environment.docker_image.",
    detail: { field: "environment.docker_image" },
  });
}

async function workspaceOf({ workspace, task }: ShelvedTask): Promise<StartInvocation["workspace"]> {
  const { digest, directory } = workspace;
  if (task.environment.repository === undefined || directory === undefined) return { kind: "image", digest };
  return { kind: "tar", digest, tar: Buffer.from(await packBelow(directory, "/")).toString("base64") };
}
