/** Owns how long each stage of a trial may take in a run, its multipliers applied. Milliseconds. */
import type { RunConfig } from "@mortise/contracts";

export interface StageLimits {
  readonly queueMs: number;
  readonly rateLimitMs: number;
  readonly buildMs: number;
  readonly setupMs: number;
  /** At most: a task may name less. */
  readonly agentMs: number;
  readonly cleanupMs: number;
  /** At most: a task may name less. */
  readonly verifyMs: number;
}

export function stageLimits(rollout: RunConfig["rollout"]): StageLimits {
  const { multipliers } = rollout;
  return {
    queueMs: rollout.queueTimeoutMs,
    rateLimitMs: rollout.rateLimitTimeoutMs,
    buildMs: rollout.buildTimeoutMs,
    setupMs: Math.round(rollout.setupTimeoutMs * multipliers.setup),
    agentMs: Math.round(rollout.agentTimeoutMs * multipliers.agent),
    cleanupMs: rollout.cleanupTimeoutMs,
    verifyMs: Math.round(rollout.verifyTimeoutMs * multipliers.verify),
  };
}
