/**
 * Owns how many trials may be in a sandbox and how many of those may run their agent.
 *
 * S1  Running agents never exceed `slots`; a trial takes a slot only once it is prepared.
 * S2  Trials between launch and the agent's end never exceed slots + warm.
 * S3  Nothing is launched while two trials a slot wait for their verdict: agents that outrun the verifiers would
 *     fill its queue until verdicts come too late, and the retries of those would fill it further.
 */
import type { Trial } from "../trial/trial.js";

export interface Occupancy {
  /** Opening, in setup, warm or running. */
  readonly inSandbox: number;
  readonly running: number;
  /** The agent has ended, the verdict is not there. */
  readonly unverified: number;
}

const UNVERIFIED_PER_SLOT = 2;

export function occupancy(trials: Iterable<Trial>): Occupancy {
  let inSandbox = 0;
  let running = 0;
  let unverified = 0;
  for (const { stage } of trials) {
    if (stage === "sealing" || stage === "verifying") unverified++;
    if (stage === "running") running++;
    if (stage === "running" || stage === "warm" || stage === "launched" || stage === "opening") inSandbox++;
  }
  return { inSandbox, running, unverified };
}

/** Trials that may be launched now (S2, S3). */
export function launchRoom(trials: Iterable<Trial>, limits: { slots: number; warm: number }): number {
  const { inSandbox, unverified } = occupancy(trials);
  if (unverified >= UNVERIFIED_PER_SLOT * limits.slots) return 0;
  return Math.max(0, limits.slots + limits.warm - inSandbox);
}

/** Prepared trials that may take a slot now, longest-queued first (S1). */
export function slotTakers(trials: Iterable<Trial>, running: number, slots: number): Trial[] {
  const takers: Trial[] = [];
  if (running >= slots) return takers;
  for (const trial of trials) {
    if (trial.stage !== "warm" || trial.sandbox === undefined) continue;
    takers.push(trial);
    if (running + takers.length >= slots) break;
  }
  return takers;
}
