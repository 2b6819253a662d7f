/** Owns what a sandbox-manager is told of one trial. Pure. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { KeepPolicy, type LaunchWorkSchema, type RunConfig } from "@mortise/contracts";
import type { SessionGrant } from "../run/effects.js";
import { stageLimits } from "../run/stage-limits.js";
import type { Trial } from "../trial/trial.js";

const KEEP: Record<RunConfig["rollout"]["keep"], KeepPolicy> = {
  never: KeepPolicy.NEVER,
  failed: KeepPolicy.FAILED,
  always: KeepPolicy.ALWAYS,
};

/** The session's token is in there: never log the result. */
export function launchMessage(
  { run, rollout }: RunConfig,
  trial: Trial,
  grant: SessionGrant,
): MessageInitShape<typeof LaunchWorkSchema> {
  const limits = stageLimits(rollout);
  const { cpus, pids, memoryBytes, diskBytes } = rollout.limits;
  return {
    run: run.id,
    trial: trial.id,
    group: trial.group,
    task: trial.task,
    harness: rollout.harness,
    modelAddress: grant.modelAddress,
    sessionToken: grant.token,
    model: grant.model,
    // 0 means: as the task and the site say.
    limits: {
      cpus: cpus ?? 0,
      pids: pids ?? 0,
      memoryBytes: BigInt(memoryBytes ?? 0),
      diskBytes: BigInt(diskBytes ?? 0),
    },
    overrides: {
      cpusMultiplier: rollout.multipliers.cpus,
      memoryMultiplier: rollout.multipliers.memory,
      agentTimeoutMultiplier: rollout.multipliers.agent,
      mounts: rollout.mounts,
      scratch: rollout.scratch.map(({ target, bytes }) => ({ target, bytes: BigInt(bytes) })),
    },
    // The manager applies the multiplier, after the task's own limit.
    agentTimeoutMs: rollout.agentTimeoutMs,
    setupTimeoutMs: limits.setupMs,
    warmTimeoutMs: rollout.warmTimeoutMs,
    queueTimeoutMs: limits.queueMs,
    rateLimitTimeoutMs: limits.rateLimitMs,
    cleanupTimeoutMs: limits.cleanupMs,
    keep: KEEP[rollout.keep],
    keepMs: rollout.keepMs,
  };
}
