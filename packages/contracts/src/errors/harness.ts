/** Owns the errors of harnesses and the runtimes that run them. */
import type { CatalogueRow } from "./row.js";

export const HARNESS_ERRORS = {
  MORTISE_HARNESS_REMOTE_ANSWER: {
    disposition: "terminal",
    meaning: "A remote runtime answered with something that cannot be used.",
    fix: "Run a runtime that speaks the version of the invocation format that the docs name.",
  },
  MORTISE_HARNESS_REMOTE_DENIED: {
    disposition: "terminal",
    meaning: "A remote runtime refuses the site's credentials.",
    fix: "Correct harness.<name>.remote.tokenFile of the site file.",
  },
  MORTISE_HARNESS_REMOTE_LOST: {
    disposition: "retry",
    meaning: "A remote runtime lost an invocation, or it cannot be told what became of it.",
    fix: "Look at the runtime's own log; the trial is lost and is tried again as a new one.",
  },
  MORTISE_HARNESS_REMOTE_REFUSED: {
    disposition: "retry",
    meaning: "A remote runtime did not begin an invocation.",
    fix: "See the reason: it is full, stops, cannot be reached, or cannot do what was asked.",
  },
  MORTISE_HARNESS_REMOTE_UNPROVEN: {
    disposition: "terminal",
    meaning: "The run demands proofs that a remote runtime cannot give.",
    fix: 'Set rollout.unproven = "allow" if nothing about egress and history needs to be proved, or use a local harness.',
  },
  MORTISE_HARNESS_RUNTIME: {
    disposition: "terminal",
    meaning: "The runtime of a harness cannot be obtained on this machine.",
    fix: "Check that its package registry can be reached and that the interpreter it needs is installed.",
  },
  MORTISE_HARNESS_UNFIT: {
    disposition: "terminal",
    meaning: "A task's image cannot run the harness.",
    fix: "Use an image that has what the reason names, or another harness for these tasks.",
  },
  MORTISE_HARNESS_UNKNOWN: {
    disposition: "terminal",
    meaning: "The run names a harness that the site does not define.",
    fix: "Add [harness.<name>] to the site file, or name a defined one.",
  },
} as const satisfies Record<string, CatalogueRow>;
