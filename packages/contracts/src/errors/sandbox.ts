/** Owns the errors of sandboxes and images. */
import type { CatalogueRow } from "./row.js";

export const SANDBOX_ERRORS = {
  MORTISE_SANDBOX_BACKEND: {
    disposition: "terminal",
    meaning: "The configured sandbox backend cannot work on this host.",
    fix: "Install what the reason names, or set sandbox.backend to another.",
  },
  MORTISE_SANDBOX_IMAGE_BUILD: {
    disposition: "retry",
    meaning: "A task's image could not be built for a reason outside the task.",
    fix: "See the cause: network, space, time or the engine itself.",
  },
  MORTISE_SANDBOX_IMAGE_DENIED: {
    disposition: "terminal",
    meaning: "A registry refuses access to an image.",
    fix: "Log in with the registry's own tool, or correct the entry in the Docker configuration file.",
  },
  MORTISE_SANDBOX_IMAGE_DIGEST: {
    disposition: "retry",
    meaning: "Bytes of an image differ from their digest.",
    fix: "Pull again; if it stays so, the registry or mirror serves damaged content.",
  },
  MORTISE_SANDBOX_IMAGE_INVALID: {
    disposition: "terminal",
    meaning: "A manifest or configuration of an image cannot be used.",
    fix: "Build or convert the image as OCI or Docker schema 2 for this platform.",
  },
  MORTISE_SANDBOX_IMAGE_LAYER: {
    disposition: "terminal",
    meaning: "A layer of an image is damaged or would reach outside its root.",
    fix: "Do not use this image; rebuild it with an ordinary builder.",
  },
  MORTISE_SANDBOX_IMAGE_OVER_LIMIT: {
    disposition: "terminal",
    meaning: "An image is larger than a limit allows.",
    fix: "Raise the named limit if the image is trusted.",
  },
  MORTISE_SANDBOX_IMAGE_REFERENCE: {
    disposition: "terminal",
    meaning: "An image is named in a way that cannot be read.",
    fix: "Use registry/repository:tag or registry/repository@sha256:digest.",
  },
  MORTISE_SANDBOX_IMAGE_REGISTRY: {
    disposition: "retry",
    meaning: "A registry could not be reached or did not answer as one.",
    fix: "Check the registry and the network; a mirror can be set by a rewrite rule.",
  },
  MORTISE_SANDBOX_IMAGE_STORE: {
    disposition: "retry",
    meaning: "The image store could not be read or written.",
    fix: "See the reason; the store needs root, free space and a file system with extended attributes.",
  },
  MORTISE_SANDBOX_IMAGE_UNKNOWN: {
    disposition: "terminal",
    meaning: "There is no such image, or none for this platform.",
    fix: "Correct the name, tag or platform.",
  },
  MORTISE_SANDBOX_LOST: {
    disposition: "retry",
    meaning: "A sandbox disappeared before its result was taken.",
    fix: "The trial is retried.",
  },
  MORTISE_SANDBOX_NETWORK: {
    disposition: "terminal",
    meaning: "The network a task asks for cannot be given to a sandbox.",
    fix: "Correct the task's allowed_hosts, or see the reason; nothing was opened.",
  },
  MORTISE_SANDBOX_NETWORK_UNRESOLVED: {
    disposition: "retry",
    meaning: "A host of an allow-list has no address now.",
    fix: "Check the name and the resolver of this host.",
  },
  MORTISE_SANDBOX_NOT_CLOSED: {
    disposition: "retry",
    meaning: "A sandbox could not be shown to be sealed, so its agent was not started.",
    fix: "See the probe or step that is named; the trial is retried.",
  },
  MORTISE_SANDBOX_NOT_KEPT: {
    disposition: "terminal",
    meaning: "There is no kept sandbox of this trial at this manager.",
    fix: 'Set rollout.keep = "failed" or "always" in the run file; kept sandboxes expire.',
  },
  MORTISE_SANDBOX_NO_SPACE: {
    disposition: "retry",
    meaning: "The disk of a sandbox-manager is full.",
    fix: "Free space on the file system that is named: `mortise clean` removes caches that are not used.",
  },
  MORTISE_SANDBOX_OVER_LIMIT: {
    disposition: "terminal",
    meaning: "The agent's change is larger than the limit.",
    fix: "Raise the disk limit of the sandbox.",
  },
  MORTISE_SANDBOX_PATCH: {
    disposition: "terminal",
    meaning: "A patch object is malformed or leaves the workspace.",
    fix: "Send the patch as the sandbox-manager produced it.",
  },
  MORTISE_SANDBOX_SEAL: {
    disposition: "terminal",
    meaning: "A step of sealing a root filesystem could not be done.",
    fix: "See the reason. The sandbox is half sealed: remove it.",
  },
  MORTISE_SANDBOX_SEAL_ANSWER: {
    disposition: "terminal",
    meaning: "A sealed root filesystem still holds an answer, or could not be searched whole.",
    fix: "Rebuild the task's image without what the hits name, or drop the task.",
  },
  MORTISE_SANDBOX_SETUP: {
    disposition: "retry",
    meaning: "A sandbox could not be set up.",
    fix: "See the reason; the trial is retried.",
  },
  MORTISE_SANDBOX_STAGE_TIMEOUT: {
    disposition: "retry",
    meaning: "A stage of a trial took longer than it may.",
    fix: "Raise the named timeout of the run file, or see why the stage is slow.",
  },
  MORTISE_SANDBOX_STATE_IN_USE: {
    disposition: "terminal",
    meaning: "Another sandbox-manager uses this state directory.",
    fix: "Stop the other one, or give this one a state directory of its own.",
  },
  MORTISE_SANDBOX_UNKNOWN_LEASE: {
    disposition: "terminal",
    meaning: "There is no such lease at this manager.",
    fix: "The trial was lost or has ended; its report says which.",
  },
} as const satisfies Record<string, CatalogueRow>;
