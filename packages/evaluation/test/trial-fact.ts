/** A trial that was completed and resolved, for tests to depart from. */
import type { TrialFact } from "../src/index.js";

let next = 0;

export const trialFact = (change: Partial<TrialFact> = {}): TrialFact => ({
  trial: `t${next++}`,
  set: "training",
  group: "g0",
  slot: 0,
  task: "a",
  termination: "completed",
  verdict: "resolved",
  retry: 0,
  sampledTokens: 10,
  turns: 2,
  stages: [],
  score: undefined,
  ...change,
});
