/** Owns the errors of answers of the model endpoint. */
import type { CatalogueRow } from "./row.js";

export const PROVIDER_ERRORS = {
  MORTISE_PROVIDER_BAD_REQUEST: {
    disposition: "terminal",
    meaning: "A model request is malformed.",
    fix: "Correct the named field of the request.",
  },
  MORTISE_PROVIDER_BUDGET: {
    disposition: "budget",
    meaning: "The session has used up a budget.",
    fix: "Raise the budget in the run configuration, or let the trial end.",
  },
  MORTISE_PROVIDER_CONTEXT_LENGTH: {
    disposition: "budget",
    meaning: "The request is longer than the context the policy has.",
    fix: "Shorten the prompt or use a policy with a longer context.",
  },
  MORTISE_PROVIDER_ENGINE: {
    disposition: "retry",
    meaning: "The engine failed or restarted.",
    fix: "The request may be sent again.",
  },
  MORTISE_PROVIDER_LISTENER: {
    disposition: "terminal",
    meaning: "A session token came through another endpoint than its own sandbox's.",
    fix: "Call the model API of the token's own sandbox; sessions opened without through_listener may be called directly.",
  },
  MORTISE_PROVIDER_NOT_FOUND: {
    disposition: "terminal",
    meaning: "The model API has no such route.",
    fix: "Use chat/completions, responses, messages, messages/count_tokens or models below the base URL.",
  },
  MORTISE_PROVIDER_TOO_LARGE: {
    disposition: "terminal",
    meaning: "A model request is larger than the body limit.",
    fix: "Send less history in one request.",
  },
  MORTISE_PROVIDER_UNAUTHORIZED: {
    disposition: "terminal",
    meaning: "The session token is missing, wrong or expired.",
    fix: "Use the token of the trial's own session.",
  },
  MORTISE_PROVIDER_UNKNOWN_SESSION: {
    disposition: "terminal",
    meaning: "There is no such session.",
    fix: "Open the session first.",
  },
} as const satisfies Record<string, CatalogueRow>;
