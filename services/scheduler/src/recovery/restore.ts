/**
 * Owns the state a scheduler starts with, derived from what the streams hold and nothing else. Pure.
 * Does not read streams (see replay.ts).
 *
 * C1  Admission counters are right at once: started is one more than the highest ordinal in any record, not a
 *     multiple of the version, so a restart neither starves nor floods the trainer.
 * C2  Groups below that ordinal without a record are open again, with the trials the log knows; the rest of their
 *     places is vacant. The draw of tasks is a pure function, so they are the same groups.
 */
import {
  ExclusionReason,
  GroupDisposition,
  type GroupRecord,
  MemberDisposition,
  type RunPhase,
  type TrialTransition,
} from "@mortise/contracts";
import { evaluationGroup, type Group, ordinalOf, type Place, trainingGroup } from "../group/group.js";
import { EVALUATIONS } from "../run/phases.js";
import type { RunPlan } from "../run/plan.js";
import { initialRunState, type RunState } from "../run/state.js";
import type { Trial } from "../trial/trial.js";
import { closedTrial, liveTrial } from "./trial-log.js";

export interface Recovered {
  readonly trials: ReadonlyMap<string, TrialTransition>;
  readonly groups: readonly GroupRecord[];
  /** Names of stored evaluations. */
  readonly evaluations: readonly string[];
  readonly phase: RunPhase;
}

/** Nothing older than the checkpoint's own weights can be sampled from: no engine's word is waited for. */
const PINNED = { version: 0, acknowledged: 0 };

/** Throws nothing: an empty log gives the state of a new run. */
export function restore(plan: RunPlan, recovered: Recovered): RunState {
  const decided = new Set(recovered.groups.map(({ group }) => group));
  const open = new Map<string, Group>();
  const started = countStarted(recovered);
  for (let ordinal = 0; ordinal < started; ordinal++) {
    if (!decided.has(`g${ordinal}`)) open.set(`g${ordinal}`, trainingGroup(plan, ordinal));
  }
  for (const name of evaluationsBegun(recovered)) open.set(name, evaluationGroup(plan, name));
  const trials = placeTrials(plan, recovered.trials, open);
  const dropped = recovered.groups.filter(isReplaceableDrop).length;
  return {
    ...initialRunState,
    ...(plan.isPinned ? PINNED : {}),
    phase: recovered.phase,
    trials,
    groups: open,
    admission: { started, decided: decided.size, dropped, refused: 0 },
    admitted: new Map(
      recovered.groups.filter(isAdmitted).map((group) => [group.group, lowestTrained(group)]),
    ),
    evaluations: new Set(recovered.evaluations),
    tally: { ...initialRunState.tally, trialsEnded: countEnded(recovered) },
  };
}

function countStarted({ trials, groups }: Recovered): number {
  let highest = -1;
  for (const last of trials.values()) highest = Math.max(highest, ordinalOf(last.group) ?? -1);
  for (const { ordinal } of groups) highest = Math.max(highest, Number(ordinal));
  return highest + 1; // C1
}

function countEnded({ trials }: Recovered): number {
  return [...trials.values()].filter((last) => liveTrial(last, "") === undefined).length;
}

function evaluationsBegun({ trials, evaluations }: Recovered): string[] {
  const begun = new Set<string>();
  for (const last of trials.values()) if (last.evaluation) begun.add(last.group);
  return Object.values(EVALUATIONS).filter((name) => begun.has(name) && !evaluations.includes(name));
}

/** Puts logged trials into the places of open groups (C2) and returns the live ones. */
function placeTrials(
  plan: RunPlan,
  logged: ReadonlyMap<string, TrialTransition>,
  open: Map<string, Group>,
): Map<string, Trial> {
  const live = new Map<string, Trial>();
  const byRetry = [...logged.values()].sort((a, b) => a.retry - b.retry);
  for (const last of byRetry) {
    const group = open.get(last.group);
    const place = group?.places[last.slotInGroup];
    if (group === undefined || place === undefined) continue;
    const rngKey = place.rngKey ?? `${plan.seed}/${place.task.id}/${last.trial}`;
    const trial = liveTrial(last, rngKey);
    if (trial !== undefined) live.set(trial.id, trial);
    const taken: Place =
      trial === undefined
        ? { ...place, history: [...place.history, closedTrial(last)] }
        : { ...place, current: trial.id };
    open.set(group.id, { ...group, places: group.places.with(last.slotInGroup, taken) });
  }
  return live;
}

function isAdmitted(group: GroupRecord): boolean {
  return group.disposition === GroupDisposition.ADMITTED;
}

function isReplaceableDrop(group: GroupRecord): boolean {
  return group.disposition === GroupDisposition.DROPPED && group.dropReason !== ExclusionReason.RUN_ENDED;
}

function lowestTrained(group: GroupRecord): number | undefined {
  const versions = group.members.flatMap(({ disposition, lowestVersion }) =>
    disposition === MemberDisposition.TRAIN && lowestVersion !== undefined ? [Number(lowestVersion)] : [],
  );
  return versions.length === 0 ? undefined : Math.min(...versions);
}
