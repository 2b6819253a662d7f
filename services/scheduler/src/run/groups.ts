/**
 * Owns the life of groups within the run: started, tended whenever one of their trials leaves, decided once.
 * Does not own the rules (group/group.ts, group/disposition.ts).
 *
 * G1  A group is decided once: deciding removes it, and its record goes out after its trials' last transitions.
 */
import { ExclusionReason, RunPhase } from "@mortise/contracts";
import { decide } from "../group/disposition.js";
import { fill, type Group, isComplete, trainingGroup, vacate } from "../group/group.js";
import type { ClosedTrial } from "../trial/trial.js";
import type { RunPlan } from "./plan.js";
import type { RunDraft, RunState } from "./state.js";

/** Starts the next training group: the task of the next ordinal. */
export function startTrainingGroup(draft: RunDraft, plan: RunPlan): void {
  const { admission } = draft.state;
  const group = trainingGroup(plan, admission.started);
  draft.set({ admission: { ...admission, started: admission.started + 1 } });
  draft.setGroup(group);
  tend(draft, group.id, plan);
}

/** The trial that left its place: closed, or forgotten because it was never launched. */
export interface Departure {
  readonly place: number;
  readonly closed: ClosedTrial | undefined;
}

/** Records a departure, then decides the group if it is complete or fills what is vacant. */
export function tend(draft: RunDraft, groupId: string, plan: RunPlan, departure?: Departure): void {
  const found = draft.state.groups.get(groupId);
  if (found === undefined) return;
  const group = departure === undefined ? found : vacate(found, departure.place, departure.closed);
  if (departure !== undefined) draft.setGroup(group);
  const { state } = draft;
  if (!state.isLive) return;
  if (isComplete(group, plan.maxRetries)) {
    if (!group.isEvaluation) decideGroup(draft, group, plan); // an evaluation is stored by its phase
    return;
  }
  if (!group.isEvaluation && isTrainingOver(state)) {
    if (group.places.every(({ current }) => current === undefined)) decideGroup(draft, group, plan);
    return;
  }
  if (!state.isDraining) fillGroup(draft, group, plan);
}

/** Whether the last step was taken: groups still open then will find no consumer. */
export function isTrainingOver(state: RunState): boolean {
  return state.phase === RunPhase.EVALUATE_AFTER || state.phase === RunPhase.FINISHED;
}

function fillGroup(draft: RunDraft, group: Group, plan: RunPlan): void {
  const filled = fill(group, plan);
  if (filled.trials.length === 0) return;
  draft.setGroup(filled.group);
  for (const trial of filled.trials) draft.setTrial(trial);
  const ids = filled.trials.map(({ id }) => id);
  const isRetry = filled.trials.some(({ retry }) => retry > 0);
  // A retry goes first: its group is the oldest and the whole group waits for it.
  const { queue } = draft.state;
  draft.set({ queue: isRetry ? [...ids, ...queue] : [...queue, ...ids] });
}

function decideGroup(draft: RunDraft, group: Group, plan: RunPlan): void {
  const { state } = draft;
  const decision = decide(group, {
    run: plan.run,
    version: state.version,
    maxStaleness: plan.maxStaleness,
    hasEnded: isTrainingOver(state),
  });
  draft.removeGroup(group.id); // G1
  const { admission } = state;
  const isReplaceable = decision.record.dropReason !== ExclusionReason.RUN_ENDED;
  draft.set({
    admission: {
      ...admission,
      decided: admission.decided + 1,
      dropped: admission.dropped + (decision.isAdmitted || !isReplaceable ? 0 : 1),
    },
    ...(decision.isAdmitted
      ? { admitted: new Map(state.admitted).set(group.id, decision.lowestVersion) }
      : {}),
  });
  draft.emit([{ kind: "publish-group", record: decision.record, trials: decision.trials }]);
}
