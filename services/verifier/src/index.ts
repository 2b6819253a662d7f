/** Owns the door to verifications for programs that run no verifier: judging kept evidence again, and running one. */
export { verdictFields } from "./grade.js";
export { judgeRun, kindOf } from "./kinds.js";
export { readableLog } from "./readable-log.js";
export { decodeEvidence, encodeEvidence } from "./run/evidence.js";
export type { Judged } from "./run/judged.js";
export type { RunRecord } from "./run/run-record.js";
export {
  type AskOnce,
  type Change,
  planVerification,
  type VerificationWish,
  type Verified,
  verify,
} from "./verification.js";
