/**
 * Owns how many of the places of a set came to something. A place is what one trial and the ones that repeat it fill: an
 * attempt of an evaluation, a position in a group. Counting places instead of trials, a loss that was repeated with
 * success is no loss, and what never ran is not forgotten.
 *
 * resolved ≤ executed ≤ expected. A place that was lost is in no rate; what it could have come to is shown as bounds.
 */
import { wilsonInterval } from "@mortise/objectives";
import type { Interval } from "../statistics/bootstrap.js";
import { isCounted, type TrialFact } from "./trial-fact.js";

/** Why the last trial of a place counts in no statistic. */
export type LossCause = "infrastructure" | "task" | "tamper" | "cancelled" | "stale";

/** What the run was to do; undefined where that is not known. */
export interface SetPlan {
  readonly places?: number | undefined;
  /** Trials that may repeat one lost to infrastructure. */
  readonly maxRetries?: number | undefined;
}

export interface PlaceCounts {
  /** `null` where the run's configuration is not known, or does not say. */
  readonly expected: number | null;
  /** With the verdict resolved or unresolved. */
  readonly executed: number;
  readonly resolved: number;
  /** Resolved of executed, 95 %, Wilson. */
  readonly resolvedInterval: Interval | null;
  /** Given up: their last trial counts in no statistic and is not repeated. */
  readonly lost: number;
  readonly lostBy: Readonly<Partial<Record<LossCause, number>>>;
  /** Neither executed nor lost: not begun, under way or about to be repeated. */
  readonly open: number | null;
  /** Resolved of expected if every place without a verdict were unresolved, and if every one were resolved. */
  readonly bounds: Interval | null;
}

export function placeCounts(trials: readonly TrialFact[], plan: SetPlan = {}): PlaceCounts {
  const places = [...byPlace(trials).values()];
  const executed = places.filter((place) => place.some(isCounted));
  const resolved = executed.filter((place) => lastOf(place.filter(isCounted)).verdict === "resolved").length;
  const lostBy: Partial<Record<LossCause, number>> = {};
  for (const place of places) {
    const cause = lossOf(place, plan.maxRetries);
    if (cause !== undefined) lostBy[cause] = (lostBy[cause] ?? 0) + 1;
  }
  const lost = Object.values(lostBy).reduce((sum, count) => sum + count, 0);
  const expected = plan.places ?? null;
  return {
    expected,
    executed: executed.length,
    resolved,
    resolvedInterval: wilsonInterval(resolved, executed.length),
    lost,
    lostBy,
    open: expected === null ? null : Math.max(0, expected - executed.length - lost),
    bounds: expected === null ? null : boundsOf(resolved, executed.length, expected),
  };
}

export function placeOf({ group, slot }: Pick<TrialFact, "group" | "slot">): string {
  return `${group}/${slot}`;
}

function byPlace(trials: readonly TrialFact[]): ReadonlyMap<string, readonly TrialFact[]> {
  const found = new Map<string, TrialFact[]>();
  for (const trial of trials) {
    const known = found.get(placeOf(trial));
    if (known) known.push(trial);
    else found.set(placeOf(trial), [trial]);
  }
  return found;
}

function lastOf(place: readonly TrialFact[]): TrialFact {
  return place.reduce((last, trial) => (trial.retry > last.retry ? trial : last));
}

function lossOf(place: readonly TrialFact[], maxRetries: number | undefined): LossCause | undefined {
  if (place.some(isCounted)) return undefined;
  const last = lastOf(place);
  const cause = causeOf(last);
  const isRepeated = cause === "infrastructure" && maxRetries !== undefined && last.retry < maxRetries;
  return isRepeated ? undefined : cause;
}

function causeOf({ verdict, termination }: TrialFact): LossCause {
  if (verdict === "invalid(task)") return "task";
  if (verdict === "invalid(tamper)") return "tamper";
  return termination === "cancelled" || termination === "stale" ? termination : "infrastructure";
}

function boundsOf(resolved: number, executed: number, expected: number): Interval | null {
  if (expected <= 0 || executed > expected) return null;
  return [resolved / expected, (resolved + expected - executed) / expected];
}
