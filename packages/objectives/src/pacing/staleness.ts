/**
 * Owns what staleness means here (DESIGN §2) and the check that makes the bound a guarantee.
 * Does not own admission, which only keeps the expectation (see capacity.ts).
 *
 * Step n (from 1) updates version n−1 into version n. A trial whose lowest trained version is v has, at step
 * n, staleness (n−1) − v; 0 is on-policy. The part up to the version current when the trial ended passed in
 * flight, the rest in the queue.
 */
export interface StalenessInput {
  /** The optimiser step that would consume the trial, from 1. */
  readonly step: number;
  /** Lowest policy version among the trial's trained tokens. */
  readonly lowestVersion: number;
  /** Version current when the trial ended; absent = unknown, then no split is given. */
  readonly endVersion?: number;
}

export interface Staleness {
  readonly total: number;
  readonly inFlight: number | null;
  readonly inQueue: number | null;
}

/** Throws RangeError for a version that does not exist yet at that step. */
export function staleness({ step, lowestVersion, endVersion }: StalenessInput): Staleness {
  const total = step - 1 - lowestVersion;
  if (total < 0) throw new RangeError(`version ${lowestVersion} is newer than step ${step} can have seen`);
  if (endVersion === undefined) return { total, inFlight: null, inQueue: null };
  const inFlight = Math.min(total, Math.max(0, endVersion - lowestVersion));
  return { total, inFlight, inQueue: total - inFlight };
}

/** True when consuming the trial at `step` would breach the bound η (C5: it is then excluded as stale). */
export function isTooStale(step: number, lowestVersion: number, bound: number): boolean {
  return staleness({ step, lowestVersion }).total > bound;
}
