/**
 * Owns how many training groups may be started, from counters that a restart derives again from the log.
 * Keeps the expectation of the staleness bound; the guarantee is the check when a group is decided and again
 * when it is consumed.
 *
 * A1  started − replaced ≤ (version + 1 + η) · groupsPerStep, the rule of packages/objectives pacing.
 * A2  started − replaced ≤ steps · groupsPerStep: no group is started that no step will want.
 * `replaced` is 0 unless dropped groups are refilled; then dropped and refused groups leave the count, or the
 * pipeline would starve.
 */
import { admissionCapacity } from "@mortise/objectives";
import type { RunPlan } from "./plan.js";

export interface AdmissionCounters {
  /** Groups ever started; the next group's ordinal. */
  readonly started: number;
  readonly decided: number;
  readonly dropped: number;
  /** Admitted, and then too old for any step. */
  readonly refused: number;
}

export type AdmissionPlan = Pick<RunPlan, "maxStaleness" | "groupsPerStep" | "steps" | "refillDropped">;

/** Groups that may be started now. @param version what new sessions are sampled from (versions.ts) */
export function groupsToStart(counters: AdmissionCounters, version: number, plan: AdmissionPlan): number {
  if (version < 0) return 0;
  const replaced = plan.refillDropped ? counters.dropped + counters.refused : 0;
  const accepted = counters.started - replaced;
  return admissionCapacity({
    bound: plan.maxStaleness,
    version,
    batch: plan.groupsPerStep,
    accepted, // A1
    running: 0,
    maxConcurrent: plan.steps * plan.groupsPerStep - accepted, // A2
  });
}

/**
 * Takes what a step consumed or refused out of the admitted groups, and counts as refused what has become too
 * old: after step n the next consumer is step n + 1, where lowest version v has staleness n − v.
 */
export function afterStep(
  admitted: ReadonlyMap<string, number | undefined>,
  step: {
    readonly version: number;
    readonly groups: readonly string[];
    readonly staleGroups: readonly string[];
  },
  maxStaleness: number,
): { admitted: Map<string, number | undefined>; refused: number } {
  const left = new Map(admitted);
  for (const group of step.groups) left.delete(group);
  let refused = 0;
  for (const [group, lowest] of left) {
    const isPast = lowest !== undefined && step.version - lowest > maxStaleness;
    if (!isPast && !step.staleGroups.includes(group)) continue;
    left.delete(group);
    refused++;
  }
  return { admitted: left, refused };
}
