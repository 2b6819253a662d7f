/**
 * Owns the order of phases and when one follows another:
 * WARM_START → EVALUATE_BEFORE → TRAIN → EVALUATE_AFTER → FINISHED. Does not run trials.
 *
 * F1  An evaluation starts after an engine acknowledged the version it measures, or when that is overdue; attempts
 *     sampled under older weights all the same are repeated (trial/reducer.ts). Its phase ends only when its record
 *     is stored.
 * F2  FINISHED is entered with no group undecided: every sampled token has a disposition.
 * F3  A run that is an evaluation alone has its one evaluation in the place of the first, and takes no step.
 */
import { Outcome, RunPhase } from "@mortise/contracts";
import { evaluationGroup, type Group, isComplete } from "../group/group.js";
import type { Trial } from "../trial/trial.js";
import type { Effect } from "./effects.js";
import { tend } from "./groups.js";
import type { RunPlan } from "./plan.js";
import type { RunDraft, RunState } from "./state.js";

/** Names of the two evaluations of a run, and of the one of a run that is nothing else (F3). */
export const EVALUATIONS = { before: "before", after: "after", only: "evaluation" } as const;

export function isTraining(state: RunState): boolean {
  return state.phase === RunPhase.TRAIN;
}

/** The evaluation that runs in a phase, if any. */
export function evaluationOf(phase: RunPhase, plan: Pick<RunPlan, "isPinned">): string | undefined {
  if (phase === RunPhase.EVALUATE_BEFORE) return firstEvaluation(plan);
  return phase === RunPhase.EVALUATE_AFTER ? EVALUATIONS.after : undefined;
}

function firstEvaluation({ isPinned }: Pick<RunPlan, "isPinned">): string {
  return isPinned ? EVALUATIONS.only : EVALUATIONS.before;
}

/** Enters every phase whose time has come. `cancel` ends a training trial that no step will want. */
export function advancePhases(draft: RunDraft, plan: RunPlan, cancel: (trial: Trial) => void): void {
  for (let next = nextPhase(draft, plan); next !== undefined; next = nextPhase(draft, plan)) {
    draft.set({ phase: next });
    draft.emit([{ kind: "publish-phase", phase: next }]);
    if (next === RunPhase.EVALUATE_AFTER) endTraining(draft, plan, cancel);
  }
}

function nextPhase(draft: RunDraft, plan: RunPlan): RunPhase | undefined {
  const { state } = draft;
  switch (state.phase) {
    case RunPhase.UNSPECIFIED:
      return RunPhase.WARM_START;
    case RunPhase.WARM_START:
      return state.version >= 0 ? RunPhase.EVALUATE_BEFORE : undefined;
    case RunPhase.EVALUATE_BEFORE:
      return evaluate(draft, plan, firstEvaluation(plan), plan.evaluateBefore) ? RunPhase.TRAIN : undefined;
    case RunPhase.TRAIN:
      return state.version >= plan.steps ? RunPhase.EVALUATE_AFTER : undefined;
    case RunPhase.EVALUATE_AFTER: {
      const isEvaluated = evaluate(draft, plan, EVALUATIONS.after, plan.evaluateAfter);
      return isEvaluated && draft.state.groups.size === 0 ? RunPhase.FINISHED : undefined; // F2
    }
    case RunPhase.FINISHED:
      return undefined;
  }
}

/** Whether the evaluation is over; starts and stores it on the way (F1). */
function evaluate(draft: RunDraft, plan: RunPlan, name: string, isWanted: boolean): boolean {
  const { state } = draft;
  if (!isWanted || state.evaluations.has(name)) return true;
  const group = state.groups.get(name);
  if (group === undefined) {
    if (state.isDraining || state.acknowledged < state.version) return false;
    draft.setGroup(evaluationGroup(plan, name));
    tend(draft, name, plan);
    return false;
  }
  if (isComplete(group, plan.maxRetries) && !state.storing.has(name)) {
    draft.set({ storing: new Set([...state.storing, name]) });
    draft.emit([publication(group, plan.run, state.version)]);
  }
  return false;
}

function endTraining(draft: RunDraft, plan: RunPlan, cancel: (trial: Trial) => void): void {
  for (const trial of [...draft.state.trials.values()]) if (!trial.isEvaluation) cancel(trial);
  for (const group of [...draft.state.groups.values()]) tend(draft, group.id, plan);
}

interface Score {
  readonly task: string;
  attempts: number;
  solved: number;
}

function publication(group: Group, run: string, version: number): Effect {
  const scores = new Map<string, Score>();
  const lost = { infra: 0, task: 0, tamper: 0 };
  for (const place of group.places) {
    const last = place.history.at(-1)!;
    const score = scores.get(place.task.id) ?? { task: place.task.id, attempts: 0, solved: 0 };
    scores.set(place.task.id, score);
    if (last.standing !== "valid") {
      // Sampled under older weights as often as it was tried: the engines never took those to be measured.
      const cause = last.standing === "task" || last.standing === "tamper" ? last.standing : "infra";
      lost[cause]++;
      continue;
    }
    score.attempts++;
    if (last.outcome === Outcome.RESOLVED) score.solved++;
  }
  const tasks = [...scores.values()];
  const attempts = tasks.reduce((sum, score) => sum + score.attempts, 0);
  const solved = tasks.reduce((sum, score) => sum + score.solved, 0);
  return {
    kind: "publish-evaluation",
    record: {
      run,
      name: group.id,
      version: BigInt(version),
      attempts,
      solved,
      invalid: group.places.length - attempts,
      tasks,
      expected: group.places.length,
      lostInfrastructure: lost.infra,
      lostTask: lost.task,
      lostTamper: lost.tamper,
      retries: group.places.reduce((sum, { history }) => sum + history.length - 1, 0),
    },
    trials: group.places.flatMap(({ history }) => history.map(({ id }) => id)),
  };
}
