/** Owns what a sandbox-manager and a verifier are told of one trial. Pure. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  KeepPolicy,
  type LaunchWorkSchema,
  type RunConfig,
  type SandboxLimitsSchema,
  ShownTests,
  type VerifyWorkSchema,
} from "@mortise/contracts";
import type { SessionGrant } from "../run/effects.js";
import { stageLimits } from "../run/stage-limits.js";
import type { Trial } from "../trial/trial.js";

const AS_IT_IS = "{instruction}";
const KEEP: Record<RunConfig["rollout"]["keep"], KeepPolicy> = {
  never: KeepPolicy.NEVER,
  failed: KeepPolicy.FAILED,
  always: KeepPolicy.ALWAYS,
};

/** The session's token and its listener's key are in there: never log the result. */
export function launchMessage(
  { run, rollout }: RunConfig,
  trial: Trial,
  grant: SessionGrant,
): MessageInitShape<typeof LaunchWorkSchema> {
  const limits = stageLimits(rollout);
  return {
    run: run.id,
    trial: trial.id,
    group: trial.group,
    task: trial.task,
    harness: rollout.harness,
    modelAddress: grant.modelAddress,
    sessionToken: grant.token,
    listenerKey: grant.listenerKey,
    model: grant.model,
    limits: limitsOf(rollout),
    overrides: {
      cpusMultiplier: rollout.multipliers.cpus,
      memoryMultiplier: rollout.multipliers.memory,
      agentTimeoutMultiplier: rollout.multipliers.agent,
      mounts: rollout.mounts,
      scratch: rollout.scratch.map(({ target, bytes }) => ({ target, bytes: BigInt(bytes) })),
      instruction: rollout.instruction === AS_IT_IS ? "" : rollout.instruction,
      closedNetwork: rollout.network === "closed",
      shownTests: rollout.shownTests === "copy" ? ShownTests.COPY : ShownTests.UNSPECIFIED,
    },
    // The manager applies the multiplier, after the task's own limit.
    agentTimeoutMs: rollout.agentTimeoutMs,
    buildTimeoutMs: limits.buildMs,
    setupTimeoutMs: limits.setupMs,
    warmTimeoutMs: rollout.warmTimeoutMs,
    queueTimeoutMs: limits.queueMs,
    rateLimitTimeoutMs: limits.rateLimitMs,
    cleanupTimeoutMs: limits.cleanupMs,
    keep: KEEP[rollout.keep],
    keepMs: rollout.keepMs,
    allowUnproven: rollout.unproven === "allow",
  };
}

/** Tests run on what the agent had: the run's limits and multipliers are those of both sandboxes. */
export function verifyMessage(
  { run, rollout }: RunConfig,
  trial: Trial,
): MessageInitShape<typeof VerifyWorkSchema> {
  const limits = stageLimits(rollout);
  const { cpus, memory, verify } = rollout.multipliers;
  return {
    run: run.id,
    trial: trial.id,
    task: trial.task,
    ...(trial.patch === undefined ? {} : { patch: trial.patch }),
    timeoutMs: limits.verifyMs,
    prepareTimeoutMs: limits.buildMs + limits.setupMs,
    limits: limitsOf(rollout),
    overrides: { cpusMultiplier: cpus, memoryMultiplier: memory, verifyTimeoutMultiplier: verify },
    evaluation: trial.isEvaluation,
  };
}

/** 0 means: as the task and the site say. */
function limitsOf({ limits }: RunConfig["rollout"]): MessageInitShape<typeof SandboxLimitsSchema> {
  const { cpus, pids, memoryBytes, diskBytes } = limits;
  return {
    cpus: cpus ?? 0,
    pids: pids ?? 0,
    memoryBytes: BigInt(memoryBytes ?? 0),
    diskBytes: BigInt(diskBytes ?? 0),
  };
}
