/**
 * Owns how many more groups may be started so that, in expectation, none is consumed beyond the staleness
 * bound η. Does not own the guarantee (staleness.ts) and starts nothing.
 *
 *   capacity = min(maxConcurrent − running, (η + version + 1)·batch − (accepted + running))
 *
 * the rule of AReaL (Fu et al. 2025), with one unit (groups) throughout. `accepted` counts every group ever
 * admitted to a batch; groups that were dropped must leave it or the pipeline starves, and after a restart it
 * is version·batch, not 0.
 */
export interface CapacityInput {
  /** η, in versions. */
  readonly bound: number;
  /** Finished updates, from 0. */
  readonly version: number;
  /** Groups per step. */
  readonly batch: number;
  readonly accepted: number;
  readonly running: number;
  readonly maxConcurrent: number;
}

/** Groups that may be started now; never negative. */
export function admissionCapacity(input: CapacityInput): number {
  const { bound, version, batch, accepted, running, maxConcurrent } = input;
  const byConcurrency = maxConcurrent - running;
  const byStaleness = (bound + version + 1) * batch - (accepted + running);
  return Math.max(0, Math.min(byConcurrency, byStaleness));
}
