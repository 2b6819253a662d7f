/** Owns the errors of messages between services. */
import type { CatalogueRow } from "./row.js";

export const TRANSPORT_ERRORS = {
  MORTISE_TRANSPORT_CANCELLED: {
    disposition: "cancelled",
    meaning: "A call was cancelled.",
    fix: "Nothing: whoever cancelled it wanted so.",
  },
  MORTISE_TRANSPORT_DECODE: {
    disposition: "terminal",
    meaning: "A message does not decode as the type its subject carries.",
    fix: "Look at the dead letter; a publisher is of another version.",
  },
  MORTISE_TRANSPORT_DENIED: {
    disposition: "terminal",
    meaning: "The bus or a service refused the credentials.",
    fix: "Use the identity files of this run.",
  },
  MORTISE_TRANSPORT_FENCED: {
    disposition: "terminal",
    meaning: "Another holder has taken the lease.",
    fix: "Nothing: the newer holder continues; this one must stop.",
  },
  MORTISE_TRANSPORT_FULL: {
    disposition: "retry",
    meaning: "A stream is full; publishes are refused.",
    fix: "Archive and prune finished runs, or raise the stream's size.",
  },
  MORTISE_TRANSPORT_INTERNAL: {
    disposition: "terminal",
    meaning: "Something failed that should not.",
    fix: "Report this with the cause from the log.",
  },
  MORTISE_TRANSPORT_MAILBOX_FULL: {
    disposition: "retry",
    meaning: "An actor's mailbox is full.",
    fix: "Its effects are stalled or it is overloaded; see the named actor.",
  },
  MORTISE_TRANSPORT_NOT_FOUND: {
    disposition: "terminal",
    meaning: "A stored message or object is not there.",
    fix: "Check the reference; it may have been pruned.",
  },
  MORTISE_TRANSPORT_SEQUENCE_CONFLICT: {
    disposition: "terminal",
    meaning: "Another writer appended to the subject first.",
    fix: "Re-read the subject and decide again.",
  },
  MORTISE_TRANSPORT_TOPOLOGY: {
    disposition: "terminal",
    meaning: "A stream, consumer or bucket exists with an incompatible definition.",
    fix: "Remove it, or use another NATS server or account.",
  },
  MORTISE_TRANSPORT_UNAVAILABLE: {
    disposition: "retry",
    meaning: "The bus or a service did not answer in time.",
    fix: "Check that it runs; the call is retried.",
  },
} as const satisfies Record<string, CatalogueRow>;
