/**
 * Owns the staleness rules of other systems, in their own conventions, so that a bound quoted for one of them
 * can be translated and the differences stay tested. Nothing in Mortise is paced by these.
 *
 * | system            | unit                 | on-policy | drops when            |
 * |-------------------|----------------------|-----------|-----------------------|
 * | Mortise           | versions, from 0     | 0         | total > η             |
 * | prime-rl          | versions, from 0     | 0         | start < (s−1) − max   |
 * | verl v1 buffer    | span, from 1         | 1         | span > threshold      |
 * | verl fully-async  | share of a batch     | 0         | never; pauses instead |
 */
import { staleness } from "./staleness.js";

export interface PrimeStaleness {
  readonly total: number;
  readonly inFlight: number;
  readonly inQueue: number;
  /** Lowest start version still accepted at this step. */
  readonly minFresh: number;
  readonly isDropped: boolean;
}

/** prime-rl: same meaning as ours; `max` is its max_off_policy_steps. */
export function stalenessPrime(step: number, start: number, end: number, max: number): PrimeStaleness {
  const { total, inFlight, inQueue } = staleness({ step, lowestVersion: start, endVersion: end });
  const minFresh = step - 1 - max;
  return { total, inFlight: inFlight!, inQueue: inQueue!, minFresh, isDropped: start < minFresh };
}

/** verl v1 replay buffer: counts the span inclusively, so its threshold 1 is our bound 0 in its numbering. */
export function stalenessVerlV1(
  step: number,
  start: number,
  threshold: number,
): { span: number; isDropped: boolean } {
  const span = step - start + 1;
  return { span, isDropped: span > threshold };
}

export interface VerlAsyncInput {
  /** Samples one training round needs. */
  readonly required: number;
  /** Its staleness_threshold: a proportion of extra samples, not a number of versions. */
  readonly threshold: number;
  readonly syncSteps: number;
  readonly activeAtSync: number;
  readonly queuedAtSync: number;
}

/** verl fully-async: how many samples may exist, and how many may start before the next weight sync. */
export function capacityVerlAsync(input: VerlAsyncInput) {
  const maxRequired = Math.trunc(input.required * (1 + input.threshold) * input.syncSteps);
  const counterAfterSync = input.activeAtSync + input.queuedAtSync;
  return {
    maxRequired,
    counterAfterSync,
    mayStartBeforeNextSync: Math.max(0, maxRequired - counterAfterSync),
  };
}
