/**
 * Owns the life of groups within the run: started, tended whenever one of their trials leaves, decided once.
 * Does not own the rules (group/group.ts, group/disposition.ts).
 *
 * G1  A group is decided once: deciding removes it, and its record goes out after its trials' last transitions.
 * G2  Groups are decided in the order in which their records go out, each for the step that will take it.
 */
import { ExclusionReason, RunPhase } from "@mortise/contracts";
import { type DecisionContext, decide } from "../group/disposition.js";
import { fill, type Group, isComplete, trainingGroup, vacate } from "../group/group.js";
import type { ClosedTrial } from "../trial/trial.js";
import type { RunPlan } from "./plan.js";
import { nextConsumer, nextToPublish } from "./publication-order.js";
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
    if (!group.isEvaluation) onComplete(draft, group, plan); // an evaluation is stored by its phase
    return;
  }
  if (!group.isEvaluation && isTrainingOver(state)) {
    if (group.places.every(({ current }) => current === undefined)) decideGroup(draft, group, plan);
    return;
  }
  if (!state.isDraining) fillGroup(draft, group, plan);
}

/** Decides complete groups in their order, until the next one has to wait. */
export function decideComplete(draft: RunDraft, plan: RunPlan): void {
  while (draft.state.complete.size > 0) {
    const next = nextToPublish(draft.state, plan);
    if (next === undefined) return;
    decideGroup(draft, next, plan);
  }
}

/** Only what takes a place of a batch has to wait for one: nothing does once training is over. */
function onComplete(draft: RunDraft, group: Group, plan: RunPlan): void {
  const { state } = draft;
  const takesPlace = !plan.refillDropped || decide(group, contextOf(state, plan)).isAdmitted;
  if (isTrainingOver(state) || !takesPlace) decideGroup(draft, group, plan);
  else draft.set({ complete: new Set(state.complete).add(group.id) });
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
  const decision = decide(group, contextOf(state, plan));
  draft.removeGroup(group.id); // G1
  const { admission } = state;
  const complete = new Set(state.complete);
  complete.delete(group.id);
  const isReplaceable = decision.record.dropReason !== ExclusionReason.RUN_ENDED;
  draft.set({
    complete,
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

/** G2 */
function contextOf(state: RunState, plan: RunPlan): DecisionContext {
  return {
    run: plan.run,
    version: state.version,
    consumer: nextConsumer(state, plan),
    maxStaleness: plan.maxStaleness,
    hasEnded: isTrainingOver(state),
  };
}
