/**
 * Owns which complete group is published next. Pure; does not decide what a group is worth (group/disposition.ts).
 *
 * The trainer takes groups in the order of the stream, so a group's place there names its step: the group at place p
 * (from 0, of those that count for a batch) is taken by step ⌊p / groupsPerStep⌋ + 1, on top of version
 * ⌊p / groupsPerStep⌋. Admission only makes sure that there are places for all: a group that overtakes others moves
 * them, and the last of them past the bound.
 *
 * O1  A group whose lowest version is v is due before place (v + 1 + η) · groupsPerStep.
 * O2  Of complete groups the one that is due first goes first.
 * O3  With `stragglers = "wait"` it does not go while that would cost a group which can still be in time its place.
 * O4  Nothing waits for ever: once no group is incomplete, the first due may go; and trials end by their deadlines.
 */
import { type Group, isSettled, type Place } from "../group/group.js";
import type { Trial } from "../trial/trial.js";
import type { RunPlan } from "./plan.js";
import type { RunState } from "./state.js";
import { sampledVersion } from "./versions.js";

type OrderPlan = Pick<
  RunPlan,
  "groupsPerStep" | "maxStaleness" | "maxRetries" | "refillDropped" | "stragglers"
>;

/** Place of the next published group among those that count for a batch (form-batch.ts of the trainer, B3). */
export function nextPlace({ admission }: Pick<RunState, "admission">, plan: OrderPlan): number {
  const { decided, dropped, refused } = admission;
  return plan.refillDropped ? decided - dropped - refused : decided;
}

/** The version on top of which the next published group will be trained. */
export function nextConsumer(state: Pick<RunState, "admission" | "version">, plan: OrderPlan): number {
  return Math.max(state.version, Math.floor(nextPlace(state, plan) / plan.groupsPerStep));
}

/** The complete group to be published now; undefined while every one of them has to wait, or there is none. */
export function nextToPublish(state: RunState, plan: OrderPlan): Group | undefined {
  const place = nextPlace(state, plan);
  const training = [...state.groups.values()].filter(({ isEvaluation }) => !isEvaluation);
  const due = training
    .map((group) => ({ group, before: dueBefore(group, state, { plan, place }) }))
    .sort((a, b) => a.before - b.before || a.group.ordinal - b.group.ordinal);
  const first = due.findIndex(({ group }) => state.complete.has(group.id)); // O2
  if (first < 0) return undefined;
  const others = due.toSpliced(first, 1);
  const isFree = plan.stragglers === "drop" || inTime(due, place) <= 1 + inTime(others, place + 1); // O3
  return isFree ? due[first]!.group : undefined;
}

interface Due {
  readonly before: number;
}

/**
 * How many groups can be in time when places are given out from `place`: earliest due first, those that would be late
 * left out, is the best there is for things that take one place each. A group that is never due is always in time, so
 * that the one that is published counts as 1.
 */
function inTime(due: readonly Due[], place: number): number {
  return due.reduce((count, { before }) => (place + count < before ? count + 1 : count), 0);
}

/**
 * O1, by the members that would be trained and can still be in time: what is late already is lost wherever its group
 * goes. Infinite when the group has nothing to lose.
 */
function dueBefore(
  group: Group,
  state: RunState,
  { plan, place }: { readonly plan: OrderPlan; readonly place: number },
): number {
  let before = Number.POSITIVE_INFINITY;
  for (const one of group.places) {
    for (const version of versionsIn(one, state, plan)) {
      const due = (version + 1 + plan.maxStaleness) * plan.groupsPerStep;
      if (due > place) before = Math.min(before, due);
    }
  }
  return before;
}

/** Lowest versions of the trials of a place that have a chance to be trained. */
function versionsIn(place: Place, state: RunState, { maxRetries }: OrderPlan): number[] {
  if (isSettled(place, false, maxRetries)) {
    return place.history.flatMap(({ standing, lowestVersion }) =>
      standing === "valid" && lowestVersion !== undefined ? [Number(lowestVersion)] : [],
    );
  }
  const trial = place.current === undefined ? undefined : state.trials.get(place.current);
  return trialVersion(trial, state);
}

function trialVersion(trial: Trial | undefined, state: RunState): number[] {
  if (trial?.seal !== undefined) {
    const { lowestVersion } = trial.seal;
    return lowestVersion === undefined ? [] : [Number(lowestVersion)];
  }
  const hasSession = trial !== undefined && trial.stage !== "queued";
  return [hasSession ? trial.launchedVersion : sampledVersion(state)];
}
