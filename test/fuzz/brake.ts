/**
 * Owns stopping work that does not end. Steps are what the suite bounds (counted.ts); the brake is only there so
 * that endless work fails with its body printed instead of hanging the run.
 */
import { Script } from "node:vm";

const BRAKE_MS = 60_000;
const enter = new Script("mortiseFuzzWork()");

/** @throws whatever `work` throws; ERR_SCRIPT_EXECUTION_TIMEOUT when it was stopped */
export function withBrake(work: () => void): void {
  Object.assign(globalThis, { mortiseFuzzWork: work });
  enter.runInThisContext({ timeout: BRAKE_MS });
}
