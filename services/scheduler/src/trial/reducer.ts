/**
 * Owns how one trial moves from its launch to its end. Pure: facts in, the next trial and effects out.
 * Does not hold slots or groups (see run/), and does no I/O.
 *
 * R1  A trial closes exactly once: a closed trial is no longer live, so later facts find nothing.
 * R2  A fact that does not fit the stage changes nothing, so facts may repeat and arrive in any order.
 * R3  Whatever ends a launched trial, its session is sealed before it closes, so that its tokens are counted (C5)
 *     and its token is dead; only a seal that no proxy gives within the deadline is given up.
 */
import { Outcome, type StageTime, TerminationReason, TrialState } from "@mortise/contracts";
import type { Effect } from "../run/effects.js";
import type { TrialFact } from "../run/messages.js";
import type { RunPlan } from "../run/plan.js";
import { TERMINATION_POLICY } from "../termination-policy.js";
import { type Closing, closingOf, standingOf, terminationWithSeal } from "./standing.js";
import { type ClosedTrial, outcomeOrUnspecified, sealFacts, type Trial } from "./trial.js";

export interface TrialStep {
  /** Absent when the trial is no longer live. */
  readonly trial?: Trial;
  /** Present when this step closed it. */
  readonly closed?: ClosedTrial;
  readonly effects: readonly Effect[];
}

/** What a trial's reducer may know of the run. */
export interface TrialRules {
  readonly plan: Pick<RunPlan, "deadlines" | "tamper" | "maxStaleness">;
  /** Current policy version. */
  readonly version: number;
  /** The version new sessions are sampled from. */
  readonly sampledVersion: number;
  /** The version on top of which the next group would be trained. */
  readonly consumer: number;
}

/** Applies one fact. */
export function onTrialFact(trial: Trial, fact: TrialFact, rules: TrialRules): TrialStep {
  switch (fact.kind) {
    case "opened":
      return onOpened(trial, fact, rules);
    case "prepared":
      return onPrepared(trial, fact, rules);
    case "ended":
      return hasSandbox(trial) ? seal(trial, fact, rules) : unchanged(trial);
    case "failed":
      return hasSandbox(trial) ? seal(trial, fact, rules) : unchanged(trial);
    case "sealed":
      if (trial.stage !== "sealing") return unchanged(trial);
      return afterSeal({ ...trial, seal: fact.seal, sealSequence: fact.sequence }, rules);
    case "judged": {
      if (trial.stage !== "verifying") return unchanged(trial);
      return close(
        trial,
        closingOf(trial.termination!, fact.verdict, rules.plan.tamper),
        fact.verdict.stages,
      );
    }
    case "deadline":
      return trial.stage === fact.stage ? onDeadline(trial, rules) : unchanged(trial);
    case "cancelled":
      return onCancelled(trial, fact.reason, rules);
  }
}

/** Gives a warm trial its slot. */
export function takeSlot(trial: Trial, rules: TrialRules): TrialStep {
  const running: Trial = { ...trial, stage: "running" };
  return moved(running, TrialState.RUNNING, [{ kind: "start-agent", trial: running }], rules);
}

/** Leaves the queue: its session is opened. An evaluation is of the current version, whatever engines have. */
export function openSession(trial: Trial, rules: TrialRules): TrialStep {
  const launchedVersion = trial.isEvaluation ? rules.version : rules.sampledVersion;
  const opening: Trial = { ...trial, stage: "opening", launchedVersion };
  return { trial: opening, effects: [{ kind: "open", trial: opening }] };
}

/** Goes on after the seal: to verification, or to the end. */
export function afterSeal(sealing: Trial, rules: TrialRules): TrialStep {
  const termination = isStale(sealing, rules)
    ? TerminationReason.STALE
    : terminationWithSeal(sealing.termination!, sealing.seal!);
  const sealed: Trial = { ...sealing, termination };
  const record: Effect = { kind: "record", trial: sealed, state: TrialState.SEALED };
  if (!TERMINATION_POLICY[termination].isVerified) {
    const outcome = sealed.isTaskFault === true ? Outcome.INVALID_TASK : outcomeOrUnspecified(undefined);
    const step = close(sealed, { termination, outcome });
    return { ...step, effects: [record, ...step.effects] };
  }
  const verifying: Trial = { ...sealed, stage: "verifying" };
  const step = moved(verifying, TrialState.VERIFYING, [{ kind: "verify", trial: verifying }], rules);
  return { ...step, effects: [record, ...step.effects] };
}

/** The deadline effect of a trial's current stage; none while it waits in the queue. */
export function watchOf(trial: Trial, plan: Pick<RunPlan, "deadlines">): Effect[] {
  if (trial.stage === "queued" || trial.stage === "opening") return [];
  return [{ kind: "watch", trial: trial.id, stage: trial.stage, ms: plan.deadlines[trial.stage] }];
}

function onOpened(trial: Trial, fact: Extract<TrialFact, { kind: "opened" }>, rules: TrialRules): TrialStep {
  if (trial.stage !== "opening" && trial.stage !== "launched") return unchanged(trial);
  const session = { proxyAddress: fact.proxyAddress, id: fact.session };
  const launched: Trial = { ...trial, stage: "launched", session };
  // Asked again after a restart: the transition is logged, the work may not have been published.
  if (trial.stage === "launched")
    return { trial: launched, effects: [{ kind: "launch", trial: launched, grant: fact.grant }] };
  return moved(
    launched,
    TrialState.LAUNCHED,
    [{ kind: "launch", trial: launched, grant: fact.grant }],
    rules,
  );
}

function onPrepared(
  trial: Trial,
  fact: Extract<TrialFact, { kind: "prepared" }>,
  rules: TrialRules,
): TrialStep {
  const sandbox = { address: fact.address, lease: fact.lease };
  if (trial.stage === "launched")
    return moved({ ...trial, sandbox, stage: "warm" }, TrialState.WARM, [], rules);
  // Read back after a restart: the log does not hold the lease, the report does.
  if (hasSandbox(trial)) return { trial: { ...trial, sandbox }, effects: [] };
  return unchanged(trial);
}

function onDeadline(trial: Trial, rules: TrialRules): TrialStep {
  switch (trial.stage) {
    case "launched":
      return giveUp(trial, TerminationReason.SETUP_FAILED, "no sandbox was prepared in time", rules);
    case "warm":
    case "running":
      return giveUp(trial, TerminationReason.SANDBOX_LOST, "the sandbox was not heard of in time", rules);
    case "sealing":
      return close(
        { ...trial, reason: "no proxy sealed the session in time" },
        { termination: TerminationReason.PROXY_FAILURE, outcome: outcomeOrUnspecified(undefined) },
      );
    case "verifying":
      return close(
        { ...trial, reason: "no verdict in time" },
        { termination: TerminationReason.VERIFIER_FAILURE, outcome: outcomeOrUnspecified(undefined) },
      );
    default:
      return unchanged(trial);
  }
}

function onCancelled(trial: Trial, reason: string, rules: TrialRules): TrialStep {
  const closing: Closing = {
    termination: TerminationReason.CANCELLED,
    outcome: outcomeOrUnspecified(undefined),
  };
  switch (trial.stage) {
    case "queued":
    case "opening":
      return { effects: [] }; // nothing was launched: as if it had never been queued
    case "sealing":
      return { trial: { ...trial, termination: TerminationReason.CANCELLED, reason }, effects: [] };
    case "verifying":
      return close({ ...trial, reason }, closing);
    default:
      return giveUp(trial, TerminationReason.CANCELLED, reason, rules);
  }
}

function giveUp(trial: Trial, termination: TerminationReason, reason: string, rules: TrialRules): TrialStep {
  const step = seal(trial, { termination, reason, stages: [] }, rules);
  return { ...step, effects: [{ kind: "cancel-sandbox", trial, reason }, ...step.effects] };
}

type End = Pick<Extract<TrialFact, { kind: "ended" }>, "termination" | "patch" | "stages"> & {
  readonly reason?: string;
  readonly isTaskFault?: boolean;
};

function seal(trial: Trial, end: End, rules: TrialRules): TrialStep {
  const sealing: Trial = {
    ...trial,
    stage: "sealing",
    termination: end.termination,
    ...(end.patch === undefined ? {} : { patch: end.patch }),
    ...(end.reason === undefined ? {} : { reason: end.reason }),
    ...(end.isTaskFault === true ? { isTaskFault: true } : {}),
    stageTimes: [...trial.stageTimes, ...end.stages],
  };
  return { trial: sealing, effects: [{ kind: "seal", trial: sealing }, ...watchOf(sealing, rules.plan)] }; // R3
}

function close(trial: Trial, closing: Closing, stages: readonly StageTime[] = []): TrialStep {
  const ended: Trial = {
    ...trial,
    termination: closing.termination,
    stageTimes: [...trial.stageTimes, ...stages],
  };
  return {
    closed: {
      id: trial.id,
      retry: trial.retry,
      standing: standingOf(closing.termination, closing.outcome, closing.reward),
      ...closing,
      ...sealFacts(trial.seal, trial.sealSequence),
    },
    effects: [{ kind: "record", trial: ended, state: TrialState.CLOSED, closing }],
  };
}

function moved(trial: Trial, state: TrialState, asks: readonly Effect[], rules: TrialRules): TrialStep {
  return { trial, effects: [{ kind: "record", trial, state }, ...asks, ...watchOf(trial, rules.plan)] };
}

/**
 * Training: too old for every step to come. Evaluation: sampled under weights older than those it is to measure,
 * by an engine that had not swapped yet.
 */
function isStale(trial: Trial, rules: TrialRules): boolean {
  const lowest = trial.seal?.lowestVersion;
  if (lowest === undefined) return false;
  if (trial.isEvaluation) return Number(lowest) < trial.launchedVersion;
  return rules.consumer - Number(lowest) > rules.plan.maxStaleness;
}

function hasSandbox(trial: Trial): boolean {
  return trial.stage === "launched" || trial.stage === "warm" || trial.stage === "running";
}

function unchanged(trial: Trial): TrialStep {
  return { trial, effects: [] };
}
