/**
 * Owns which errors of preparing a sandbox lie in the task: in its files, its image, or what both ask for. Another try,
 * here or elsewhere, would fail the same, so such a trial is an invalid task and not repeated. Every other failure says
 * something about a place or a moment, and is infrastructure. Does not act on it (the scheduler and the verifier do).
 */
import { boundaryOf, type ErrorCode, isErrorCode } from "./errors/index.js";

type PreparationCode = Extract<ErrorCode, `MORTISE_SANDBOX_${string}` | `MORTISE_HARNESS_${string}`>;

/** Total, so that whoever adds a code decides this. Codes of tasks themselves always lie in the task. */
const LIES_IN: Readonly<Record<PreparationCode, "task" | "place">> = {
  MORTISE_HARNESS_REMOTE_ANSWER: "place",
  MORTISE_HARNESS_REMOTE_DENIED: "place",
  MORTISE_HARNESS_REMOTE_LOST: "place",
  MORTISE_HARNESS_REMOTE_REFUSED: "place",
  MORTISE_HARNESS_REMOTE_UNPROVEN: "place",
  MORTISE_HARNESS_RUNTIME: "place",
  MORTISE_HARNESS_UNFIT: "task",
  MORTISE_HARNESS_UNKNOWN: "place",
  MORTISE_SANDBOX_BACKEND: "place",
  MORTISE_SANDBOX_IMAGE_BUILD: "place",
  MORTISE_SANDBOX_IMAGE_DENIED: "place",
  MORTISE_SANDBOX_IMAGE_DIGEST: "place",
  MORTISE_SANDBOX_IMAGE_INVALID: "task",
  MORTISE_SANDBOX_IMAGE_LAYER: "task",
  MORTISE_SANDBOX_IMAGE_OVER_LIMIT: "task",
  MORTISE_SANDBOX_IMAGE_REFERENCE: "task",
  MORTISE_SANDBOX_IMAGE_REGISTRY: "place",
  MORTISE_SANDBOX_IMAGE_STORE: "place",
  MORTISE_SANDBOX_IMAGE_UNKNOWN: "task",
  MORTISE_SANDBOX_LOST: "place",
  // Its reasons are of both kinds: an allow-list that cannot be read, and a host without the means for one.
  MORTISE_SANDBOX_NETWORK: "place",
  MORTISE_SANDBOX_NETWORK_UNRESOLVED: "place",
  MORTISE_SANDBOX_NOT_CLOSED: "place",
  MORTISE_SANDBOX_NOT_KEPT: "place",
  MORTISE_SANDBOX_NO_SPACE: "place",
  MORTISE_SANDBOX_OVER_LIMIT: "place",
  MORTISE_SANDBOX_PATCH: "place",
  // A step that could not be done: a full disk, or a work tree that does not let itself be sealed.
  MORTISE_SANDBOX_SEAL: "place",
  MORTISE_SANDBOX_SEAL_ANSWER: "task",
  MORTISE_SANDBOX_SETUP: "place",
  MORTISE_SANDBOX_STAGE_TIMEOUT: "place",
  MORTISE_SANDBOX_STATE_IN_USE: "place",
  MORTISE_SANDBOX_UNKNOWN_LEASE: "place",
};

/** Whether a sandbox that failed with this error code says something about its task. */
export function isTaskFault(code: string): boolean {
  if (!isErrorCode(code)) return false;
  return (
    boundaryOf(code) === "task" ||
    (Object.hasOwn(LIES_IN, code) && LIES_IN[code as PreparationCode] === "task")
  );
}
