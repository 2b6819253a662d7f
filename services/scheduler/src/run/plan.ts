/**
 * Owns what does not change during a run: limits, deadlines, the draw of tasks, the attempts of an evaluation.
 * Does not hold state.
 */
import type { RunConfig } from "@mortise/contracts";
import { evaluationPlan, type IndexedTask, type PlannedAttempt, TaskOrder } from "../task-order.js";
import type { TrialStage } from "../trial/trial.js";
import { stageLimits } from "./stage-limits.js";

/** Deadline of each stage a trial may be stuck in, milliseconds. */
export type StageDeadlines = Readonly<Record<Exclude<TrialStage, "queued" | "opening">, number>>;

export interface RunPlan {
  readonly run: string;
  readonly seed: number;
  readonly groupSize: number;
  readonly slots: number;
  readonly warm: number;
  readonly maxRetries: number;
  /** η */
  readonly maxStaleness: number;
  readonly stragglers: RunConfig["async"]["stragglers"];
  /** An evaluation alone: its weights are the checkpoint's, version 0, and nobody trains. */
  readonly isPinned: boolean;
  readonly steps: number;
  readonly groupsPerStep: number;
  readonly refillDropped: boolean;
  readonly tamper: "exclude" | "penalise";
  readonly order: TaskOrder;
  /** The attempts of every evaluation: the same list before and after, so that they pair. */
  readonly attempts: readonly PlannedAttempt[];
  readonly evaluateBefore: boolean;
  readonly evaluateAfter: boolean;
  readonly deadlines: StageDeadlines;
}

/** A lost verifier's work returns only after its acknowledgement wait. */
const VERIFY_GRACE_MS = 120_000;
/** The report, after the manager's own timeout has fired. */
const REPORT_GRACE_MS = 15_000;
const SEAL_DEADLINE_MS = 120_000;

export function runPlan(
  config: RunConfig,
  tasks: { train: readonly IndexedTask[]; evaluate: readonly IndexedTask[] },
): RunPlan {
  const { rollout, trainer, evaluation } = config;
  const limits = stageLimits(rollout);
  const attempts = evaluationPlan(tasks.evaluate, evaluation.attempts);
  const isPinned = config.run.mode === "evaluation";
  return {
    run: config.run.id,
    seed: config.run.seed,
    groupSize: rollout.groupSize,
    slots: rollout.slots,
    warm: rollout.warm,
    maxRetries: rollout.maxRetries,
    maxStaleness: config.async.maxStaleness,
    stragglers: config.async.stragglers,
    isPinned,
    steps: isPinned ? 0 : trainer.steps,
    groupsPerStep: trainer.groupsPerStep,
    refillDropped: trainer.refillDropped,
    tamper: config.termination.tamper,
    order: new TaskOrder(tasks.train, config.run.seed),
    attempts,
    evaluateBefore: (isPinned || evaluation.before) && attempts.length > 0,
    evaluateAfter: !isPinned && evaluation.after && attempts.length > 0,
    deadlines: {
      // A lost manager's work returns only after its acknowledgement wait, which is shorter than any of these.
      launched: limits.queueMs + limits.rateLimitMs + limits.buildMs + limits.setupMs + REPORT_GRACE_MS,
      warm: rollout.warmTimeoutMs + REPORT_GRACE_MS,
      running: limits.agentMs + limits.cleanupMs + REPORT_GRACE_MS,
      sealing: SEAL_DEADLINE_MS,
      // What would be resolved is run a second time, with altered tests.
      verifying: limits.buildMs + 2 * (limits.setupMs + limits.verifyMs) + VERIFY_GRACE_MS,
    },
  };
}
