/** Owns the errors of training. */
import type { CatalogueRow } from "./row.js";

export const TRAINER_ERRORS = {
  MORTISE_TRAINER_CHECKPOINT: {
    disposition: "terminal",
    meaning: "A training checkpoint is missing, incomplete or does not belong to the published version.",
    fix: "Start the trainer with the state directory of this run; the published version cannot be resumed without its optimiser.",
  },
  MORTISE_TRAINER_COMPUTE: {
    disposition: "terminal",
    meaning: "The compute thread of the trainer ended.",
    fix: "See the reason; the step was not committed and is taken again after a restart.",
  },
  MORTISE_TRAINER_DEMONSTRATIONS: {
    disposition: "terminal",
    meaning: "The demonstrations file is malformed.",
    fix: "Correct the named line: JSONL with `messages`.",
  },
  MORTISE_TRAINER_NON_FINITE: {
    disposition: "terminal",
    meaning: "A loss or gradient is not finite.",
    fix: "Lower the learning rate; the step was not committed.",
  },
} as const satisfies Record<string, CatalogueRow>;
