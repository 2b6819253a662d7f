/**
 * Owns the run: applies a message to its trial or to the run itself, then lets the run proceed. Pure.
 * Does not own how a trial moves (trial/), when phases change (phases.ts) or what a group is worth (group/).
 */
import { TerminationReason } from "@mortise/contracts";
import type { Step } from "@mortise/kernel";
import { onTrialFact, openSession, type TrialStep, takeSlot } from "../trial/reducer.js";
import type { ClosedTrial, Trial } from "../trial/trial.js";
import { afterStep, groupsToStart } from "./admission.js";
import type { Effect } from "./effects.js";
import { decideComplete, startTrainingGroup, tend } from "./groups.js";
import type { RunMessage } from "./messages.js";
import { advancePhases, isTraining } from "./phases.js";
import type { RunPlan } from "./plan.js";
import { resumeTrials } from "./resume.js";
import { launchRoom, occupancy, slotTakers } from "./slots.js";
import { RunDraft, type RunState } from "./state.js";
import { trialRules } from "./trial-rules.js";
import { sampledVersion } from "./versions.js";

export type RunReducer = (state: RunState, message: RunMessage) => Step<RunState, Effect>;

export function runReducer(plan: RunPlan): RunReducer {
  return (state, message) => {
    const draft = new RunDraft(state);
    apply(draft, message, plan);
    if (draft.state.isLive) proceed(draft, plan);
    return draft.step();
  };
}

function apply(draft: RunDraft, message: RunMessage, plan: RunPlan): void {
  const { state } = draft;
  switch (message.kind) {
    case "trial": {
      const trial = state.trials.get(message.trial);
      if (trial === undefined) return; // closed, or of no concern (R1)
      commit(draft, trial, onTrialFact(trial, message.fact, trialRules(state, plan)), plan);
      return;
    }
    case "weights":
      draft.set({ version: Math.max(state.version, message.version) });
      return;
    case "receipt":
    case "receipt-overdue":
      draft.set({ acknowledged: Math.max(state.acknowledged, message.version) });
      return;
    case "step":
      applyStep(draft, message.record, plan);
      return;
    case "evaluation-stored":
      draft.set({ evaluations: new Set([...state.evaluations, message.name]) });
      draft.removeGroup(message.name);
      return;
    case "reconciled":
      draft.set({ isLive: true });
      resumeTrials(draft, plan, (trial, step) => commit(draft, trial, step, plan));
      for (const group of [...draft.state.groups.values()]) tend(draft, group.id, plan);
      return;
    case "drain":
      draft.set({ isDraining: true });
      cancelForDrain(draft, message.cancelRunning, plan);
      return;
    case "storage":
      draft.set({ isStorageFull: message.isFull });
      return;
  }
}

/** Phases, then groups, launches and slots: each may make room for the next. */
function proceed(draft: RunDraft, plan: RunPlan): void {
  advancePhases(draft, plan, (trial) => cancel(draft, trial, "the run has ended", plan));
  decideComplete(draft, plan);
  const { state } = draft;
  if (state.isDraining) return;
  const mayLaunch = !state.isStorageFull;
  if (mayLaunch && isTraining(state)) {
    const more = groupsToStart(state.admission, sampledVersion(state), plan);
    for (let i = 0; i < more; i++) startTrainingGroup(draft, plan);
  }
  if (mayLaunch) launchQueued(draft, plan);
  grantSlots(draft, plan);
}

function launchQueued(draft: RunDraft, plan: RunPlan): void {
  const { queue, trials } = draft.state;
  if (queue.length === 0) return;
  const room = launchRoom(trials.values(), plan);
  if (room === 0) return;
  draft.set({ queue: queue.slice(room) });
  for (const id of queue.slice(0, room)) {
    const trial = trials.get(id);
    if (trial?.stage === "queued")
      commit(draft, trial, openSession(trial, trialRules(draft.state, plan)), plan);
  }
}

function grantSlots(draft: RunDraft, plan: RunPlan): void {
  const { trials } = draft.state;
  const { running } = occupancy(trials.values());
  for (const trial of slotTakers(trials.values(), running, plan.slots)) {
    commit(draft, trial, takeSlot(trial, trialRules(draft.state, plan)), plan);
  }
}

/** Applies a trial's step to the run; a trial that left makes its group look for the next thing to do. */
function commit(draft: RunDraft, before: Trial, step: TrialStep, plan: RunPlan): void {
  draft.emit(step.effects);
  if (step.trial !== undefined) {
    if (step.trial !== before) draft.setTrial(step.trial);
    return;
  }
  draft.removeTrial(before.id);
  if (before.stage === "queued") draft.set({ queue: draft.state.queue.filter((id) => id !== before.id) });
  if (step.closed !== undefined) count(draft, before, step.closed);
  tend(draft, before.group, plan, { place: before.place, closed: step.closed });
}

function count(draft: RunDraft, trial: Trial, closed: ClosedTrial): void {
  const { tally } = draft.state;
  const isRewarded = !trial.isEvaluation && closed.reward !== undefined;
  draft.set({
    tally: {
      ...tally,
      trialsEnded: tally.trialsEnded + 1,
      setupFailures: tally.setupFailures + (closed.termination === TerminationReason.SETUP_FAILED ? 1 : 0),
      rewardSum: tally.rewardSum + (isRewarded ? closed.reward : 0),
      rewardCount: tally.rewardCount + (isRewarded ? 1 : 0),
    },
  });
}

function applyStep(
  draft: RunDraft,
  record: Extract<RunMessage, { kind: "step" }>["record"],
  plan: RunPlan,
): void {
  const { state } = draft;
  const { groups, staleGroups } = record;
  const step = { version: Number(record.version), groups, staleGroups };
  const { admitted, refused } = afterStep(state.admitted, step, plan.maxStaleness);
  draft.set({
    admitted,
    admission: { ...state.admission, refused: state.admission.refused + refused },
    tally: {
      trialsEnded: state.tally.trialsEnded,
      setupFailures: 0,
      rewardSum: 0,
      rewardCount: 0,
      ...(record.ledger === undefined ? {} : { ledger: record.ledger }),
    },
  });
}

function cancelForDrain(draft: RunDraft, cancelRunning: boolean, plan: RunPlan): void {
  for (const trial of [...draft.state.trials.values()]) {
    const hasStarted = trial.stage === "running" || trial.stage === "sealing" || trial.stage === "verifying";
    if (trial.stage !== "queued" && (cancelRunning || !hasStarted)) {
      cancel(draft, trial, "the run is draining", plan);
    }
  }
}

function cancel(draft: RunDraft, trial: Trial, reason: string, plan: RunPlan): void {
  commit(
    draft,
    trial,
    onTrialFact(trial, { kind: "cancelled", reason }, trialRules(draft.state, plan)),
    plan,
  );
}
