/** Owns the errors of verifications. */
import type { CatalogueRow } from "./row.js";

export const VERIFIER_ERRORS = {
  MORTISE_VERIFIER_INFRA: {
    disposition: "retry",
    meaning: "Verification failed for a reason that is not the agent's.",
    fix: "See the reason; the trial is retried.",
  },
  MORTISE_VERIFIER_RESULTS: {
    disposition: "terminal",
    meaning: "The test run gave no usable per-test results.",
    fix: "Check that tests/test.sh prints results in the task's format.",
  },
} as const satisfies Record<string, CatalogueRow>;
