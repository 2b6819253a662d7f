/** Owns what a trial's reducer is told of its run. */
import type { TrialRules } from "../trial/reducer.js";
import type { RunPlan } from "./plan.js";
import { nextConsumer } from "./publication-order.js";
import type { RunState } from "./state.js";
import { sampledVersion } from "./versions.js";

export function trialRules(state: RunState, plan: RunPlan): TrialRules {
  return {
    plan,
    version: state.version,
    sampledVersion: sampledVersion(state),
    consumer: nextConsumer(state, plan),
  };
}
