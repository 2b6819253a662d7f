/** Owns the door to judging kept evidence again, for programs that run no verifier. */
export { verdictFields } from "./grade.js";
export { judgeRun, kindOf } from "./kinds.js";
export { decodeEvidence } from "./run/evidence.js";
export type { Judged } from "./run/judged.js";
export type { RunRecord } from "./run/run-record.js";
