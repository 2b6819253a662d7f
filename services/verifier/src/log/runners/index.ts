/** Owns the list of test runners that can be given a channel. */
import type { Runner } from "../runner.js";
import { jest, mocha, vitest } from "./node.js";
import { pytest, unittest } from "./python.js";

export const RUNNERS: readonly Runner[] = [pytest, unittest, jest, vitest, mocha];

/** By the name evidence has; evidence of before there were others is of pytest. */
export function runnerNamed(name: string | undefined): Runner {
  return RUNNERS.find((runner) => runner.name === (name ?? "pytest")) ?? pytest;
}
