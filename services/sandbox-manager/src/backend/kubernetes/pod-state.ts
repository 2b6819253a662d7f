/**
 * Owns what the state of a pod means: running, not yet, never, and how it ended. Does not ask for it.
 */
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import { type ErrorCode, MortiseError } from "@mortise/contracts";
import { CONTAINER } from "./pod-spec.js";

/** Reasons of the kubelet for which waiting longer helps nobody. */
const NEVER_STARTS: Readonly<Record<string, ErrorCode>> = {
  CreateContainerConfigError: "MORTISE_SANDBOX_SETUP",
  CreateContainerError: "MORTISE_SANDBOX_SETUP",
  RunContainerError: "MORTISE_SANDBOX_SETUP",
  CrashLoopBackOff: "MORTISE_SANDBOX_SETUP",
  ErrImageNeverPull: "MORTISE_SANDBOX_IMAGE_UNKNOWN",
  InvalidImageName: "MORTISE_SANDBOX_IMAGE_REFERENCE",
  ImageInspectError: "MORTISE_SANDBOX_IMAGE_INVALID",
};
/** While the kubelet still tries, the reason is the first one; after several failures, the second. */
const PULL_FAILS = new Set(["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"]);

/** True once commands can run, undefined while that may still come. Throws a MortiseError when it never will. */
export function isRunning(pod: V1Pod | undefined): true | undefined {
  if (pod === undefined) return undefined;
  const name = pod.metadata!.name!;
  const init = statusOf(pod, CONTAINER.close);
  const closing = init?.state?.terminated;
  if (closing !== undefined && closing.exitCode !== 0)
    throw new MortiseError({
      code: "MORTISE_SANDBOX_NOT_CLOSED",
      message: `pod ${name}: its network could not be closed: ${wordsOf(closing)}`,
    });
  for (const status of [init, ...(pod.status?.containerStatuses ?? [])]) refuseWaiting(name, status);
  const end = endOf(pod);
  if (end !== undefined) throw setupError(name, end.reason);
  const running = [CONTAINER.relay, CONTAINER.sandbox].map((one) => statusOf(pod, one)?.state?.running);
  return running.every((one) => one !== undefined) ? true : undefined;
}

/** Why it does not run yet, for when the time is over. */
export function whyNotRunning(pod: V1Pod | undefined): string {
  if (pod === undefined) return "the API server says nothing of it";
  const condition = pod.status?.conditions?.find(
    ({ type, status }) => type === "PodScheduled" && status === "False",
  );
  if (condition !== undefined) return `${condition.reason ?? "not scheduled"}: ${condition.message ?? ""}`;
  const waiting = [
    ...(pod.status?.initContainerStatuses ?? []),
    ...(pod.status?.containerStatuses ?? []),
  ].flatMap(({ name, state }) =>
    state?.waiting === undefined ? [] : [`${name}: ${wordsOf(state.waiting)}`],
  );
  return waiting.join("; ") || `it is ${pod.status?.phase ?? "unknown"}`;
}

export interface PodEnd {
  readonly reason: string;
  /** The kernel killed its first process, or with it everything in it, for memory. */
  readonly isOutOfMemory: boolean;
}

/** How a pod that runs nothing more came to that; undefined while it runs. */
export function endOf(pod: V1Pod): PodEnd | undefined {
  const ended = statusOf(pod, CONTAINER.sandbox)?.state?.terminated;
  const relay = statusOf(pod, CONTAINER.relay)?.state?.terminated;
  const { phase, reason, message } = pod.status ?? {};
  const isOutOfMemory = ended?.reason === "OOMKilled";
  if (phase === "Failed" && reason !== undefined)
    return { reason: `${reason}: ${message ?? "no more is said"}`, isOutOfMemory };
  if (ended !== undefined) return { reason: `its container ended: ${wordsOf(ended)}`, isOutOfMemory };
  if (relay !== undefined) return { reason: `its relay ended: ${wordsOf(relay)}`, isOutOfMemory };
  if (phase === "Failed" || phase === "Succeeded") return { reason: `it is ${phase}`, isOutOfMemory };
  return undefined;
}

function refuseWaiting(name: string, status: V1ContainerStatus | undefined): void {
  const { reason, message } = status?.state?.waiting ?? {};
  if (reason === undefined) return;
  const code = NEVER_STARTS[reason] ?? (PULL_FAILS.has(reason) ? pullError(message ?? "") : undefined);
  if (code === undefined) return;
  throw new MortiseError({
    code,
    message: `pod ${name}: ${status!.name} (${status!.image}): ${reason}: ${message ?? ""}`,
  });
}

/** A node says in words only why a registry gave it nothing. */
function pullError(message: string): ErrorCode | undefined {
  if (/unauthorized|denied|forbidden|no basic auth|authentication required/i.test(message))
    return "MORTISE_SANDBOX_IMAGE_DENIED";
  if (/not found|manifest unknown|no match for platform|no matching manifest/i.test(message))
    return "MORTISE_SANDBOX_IMAGE_UNKNOWN";
  // The first words are often "Back-off pulling image", without a cause: what comes before or after names it.
  return message === "" || /^Back-off/.test(message) ? undefined : "MORTISE_SANDBOX_IMAGE_REGISTRY";
}

function statusOf(pod: V1Pod, name: string): V1ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  return [...initContainerStatuses, ...containerStatuses].find((status) => status.name === name);
}

function wordsOf({
  reason,
  message,
  exitCode,
}: {
  reason?: string;
  message?: string;
  exitCode?: number;
}): string {
  return [reason, exitCode === undefined ? undefined : `exit code ${exitCode}`, message]
    .filter((one) => one !== undefined && one !== "")
    .join(", ");
}

function setupError(name: string, reason: string): MortiseError {
  return new MortiseError({ code: "MORTISE_SANDBOX_SETUP", message: `pod ${name}: ${reason}` });
}
