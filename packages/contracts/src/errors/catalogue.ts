/** Owns the catalogue of errors: one table, a file for each edge of the system. */
import { CAPTURE_ERRORS } from "./capture.js";
import { CONFIG_ERRORS } from "./config.js";
import { HARNESS_ERRORS } from "./harness.js";
import { OPERATOR_ERRORS } from "./operator.js";
import { POLICY_ERRORS } from "./policy.js";
import { PROVIDER_ERRORS } from "./provider.js";
import { SANDBOX_ERRORS } from "./sandbox.js";
import { TASK_ERRORS } from "./task.js";
import { TRAINER_ERRORS } from "./trainer.js";
import { TRANSPORT_ERRORS } from "./transport.js";
import { VERIFIER_ERRORS } from "./verifier.js";

/** Every stable code: MORTISE_<BOUNDARY>_<WHAT>. */
export const ERROR_CATALOGUE = {
  ...CONFIG_ERRORS,
  ...OPERATOR_ERRORS,
  ...TRANSPORT_ERRORS,
  ...POLICY_ERRORS,
  ...PROVIDER_ERRORS,
  ...CAPTURE_ERRORS,
  ...HARNESS_ERRORS,
  ...SANDBOX_ERRORS,
  ...TASK_ERRORS,
  ...VERIFIER_ERRORS,
  ...TRAINER_ERRORS,
} as const;

export type ErrorCode = keyof typeof ERROR_CATALOGUE;
