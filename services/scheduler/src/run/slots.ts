/**
 * Owns how many trials may be in a sandbox and how many of those may run their agent.
 *
 * S1  Running agents never exceed `slots`; a trial takes a slot only once it is prepared.
 * S2  Trials between launch and the agent's end never exceed slots + warm.
 */
import type { Trial } from "../trial/trial.js";

export interface Occupancy {
  /** Opening, in setup, warm or running. */
  readonly inSandbox: number;
  readonly running: number;
}

export function occupancy(trials: Iterable<Trial>): Occupancy {
  let inSandbox = 0;
  let running = 0;
  for (const { stage } of trials) {
    if (stage === "running") running++;
    if (stage === "running" || stage === "warm" || stage === "launched" || stage === "opening") inSandbox++;
  }
  return { inSandbox, running };
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
