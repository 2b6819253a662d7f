/**
 * Owns a group: its places, which trial each place has now and had before, and when a place is settled.
 * An evaluation is a group too, whose places have tasks of their own. Does not decide what a settled group is
 * worth (see disposition.ts).
 *
 * P1  A place has at most one live trial.
 * P2  A place is settled by a trial that says something about the policy or the task, or when its retries are
 *     spent; only infrastructure failures spend them.
 */
import type { RunPlan } from "../run/plan.js";
import type { ClosedTrial, TaskName, Trial } from "../trial/trial.js";

export interface Place {
  readonly task: TaskName;
  /** Trial id of the first trial; retries append to it. */
  readonly firstTrial: string;
  /** Present for evaluation: the noise of an attempt is the same before and after. */
  readonly rngKey?: string;
  /** Closed trials, in order. */
  readonly history: readonly ClosedTrial[];
  /** The live trial. */
  readonly current?: string;
}

export interface Group {
  /** `g<ordinal>`, or the name of the evaluation. */
  readonly id: string;
  readonly isEvaluation: boolean;
  /** Order in which groups were started; -1 for an evaluation. */
  readonly ordinal: number;
  readonly epoch: number;
  readonly places: readonly Place[];
}

/** The training group started as number `ordinal`: a pure function of the plan (see task-order.ts). */
export function trainingGroup(plan: RunPlan, ordinal: number): Group {
  const { task, epoch } = plan.order.at(ordinal);
  const id = `g${ordinal}`;
  const places = Array.from({ length: plan.groupSize }, (_, place) => ({
    task,
    firstTrial: `${id}-${place}`,
    history: [],
  }));
  return { id, isEvaluation: false, ordinal, epoch, places };
}

/** The ordinal in a training group's id; undefined for anything else. */
export function ordinalOf(groupId: string): number | undefined {
  const match = /^g(\d+)$/.exec(groupId);
  return match === null ? undefined : Number(match[1]);
}

/** All attempts of one evaluation. */
export function evaluationGroup(plan: RunPlan, name: string): Group {
  const places = plan.attempts.map(({ task, taskIndex, attempt }) => ({
    task,
    firstTrial: `${name}-${taskIndex}-${attempt}`,
    rngKey: `${plan.seed}/eval/${task.id}/${attempt}`,
    history: [],
  }));
  return { id: name, isEvaluation: true, ordinal: -1, epoch: 0, places };
}

/** Whether a place needs no further trial (P2). */
export function isSettled(place: Place, isEvaluation: boolean, maxRetries: number): boolean {
  const last = place.history.at(-1);
  if (place.current !== undefined || last === undefined) return false;
  switch (last.standing) {
    case "valid":
    case "task":
    case "tamper":
      return true;
    case "stale":
      return !isEvaluation || hasSpentRetries(place, maxRetries);
    case "infra":
      return hasSpentRetries(place, maxRetries);
    case "cancelled":
      return false;
  }
}

function hasSpentRetries(place: Place, maxRetries: number): boolean {
  const failures = place.history.filter(({ standing }) => standing === "infra" || standing === "stale");
  return failures.length > maxRetries;
}

/** Whether every place is settled. */
export function isComplete(group: Group, maxRetries: number): boolean {
  return group.places.every((place) => isSettled(place, group.isEvaluation, maxRetries));
}

/** Fills every place that is neither settled nor occupied with a new queued trial. */
export function fill(group: Group, plan: RunPlan): { group: Group; trials: readonly Trial[] } {
  const trials: Trial[] = [];
  const places = group.places.map((place, index) => {
    if (place.current !== undefined || isSettled(place, group.isEvaluation, plan.maxRetries)) return place;
    const trial = nextTrial(group, place, index, plan.seed);
    trials.push(trial);
    return { ...place, current: trial.id };
  });
  return trials.length === 0 ? { group, trials } : { group: { ...group, places }, trials };
}

/** Moves the place's trial into its history, or forgets a trial that was never launched. */
export function vacate(group: Group, index: number, closed: ClosedTrial | undefined): Group {
  const places = group.places.map((place, i) => {
    if (i !== index) return place;
    const { current: _, ...rest } = place;
    return closed === undefined ? rest : { ...rest, history: [...place.history, closed] };
  });
  return { ...group, places };
}

function nextTrial(group: Group, place: Place, index: number, seed: number): Trial {
  const retry = place.history.length;
  const id = retry === 0 ? place.firstTrial : `${place.firstTrial}r${retry}`;
  return {
    id,
    group: group.id,
    place: index,
    retry,
    retryOf: place.history.at(-1)?.id ?? "",
    isEvaluation: group.isEvaluation,
    task: place.task,
    rngKey: place.rngKey ?? `${seed}/${place.task.id}/${id}`,
    stage: "queued",
    launchedVersion: 0,
    sealSequence: 0n,
    stageTimes: [],
  };
}
