/** Owns the errors of captured tokens. */
import type { CatalogueRow } from "./row.js";

export const CAPTURE_ERRORS = {
  MORTISE_CAPTURE_INVALID: {
    disposition: "terminal",
    meaning: "Captured records contradict each other.",
    fix: "Report this: the capture journal must never do so.",
  },
  MORTISE_CAPTURE_LEDGER: {
    disposition: "terminal",
    meaning: "The token ledger does not balance.",
    fix: "Report this with the run's streams: tokens were lost or counted twice.",
  },
} as const satisfies Record<string, CatalogueRow>;
