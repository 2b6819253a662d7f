/**
 * Owns the deadline of each live trial's stage: one timer per trial, replaced when the stage changes.
 * A deadline does not strike while no instance of the service it waits for is live: spending retries on an
 * outage would throw the run's tasks away. It strikes once one is back and still says nothing.
 */
import type { Cancel, Clock } from "@mortise/kernel";
import type { TrialStage } from "../trial/trial.js";
import type { Peer } from "./peers.js";

const WAITS_FOR: Readonly<Partial<Record<TrialStage, Peer>>> = {
  launched: "sandbox-manager",
  warm: "sandbox-manager",
  running: "sandbox-manager",
  sealing: "proxy",
  verifying: "verifier",
};
const RECHECK_MS = 10_000;

export class Deadlines {
  readonly #clock: Clock;
  readonly #isLive: (peer: Peer) => boolean;
  readonly #strike: (trial: string, stage: TrialStage) => void;
  readonly #timers = new Map<string, Cancel>();

  constructor(options: {
    readonly clock: Clock;
    isLive(peer: Peer): boolean;
    strike(trial: string, stage: TrialStage): void;
  }) {
    this.#clock = options.clock;
    this.#isLive = options.isLive;
    this.#strike = options.strike;
  }

  watch(trial: string, stage: TrialStage, ms: number): void {
    this.#timers.get(trial)?.();
    this.#timers.set(
      trial,
      this.#clock.after(ms, () => {
        this.#timers.delete(trial);
        const peer = WAITS_FOR[stage];
        if (peer !== undefined && !this.#isLive(peer)) this.watch(trial, stage, RECHECK_MS);
        else this.#strike(trial, stage);
      }),
    );
  }

  forget(trial: string): void {
    this.#timers.get(trial)?.();
    this.#timers.delete(trial);
  }

  close(): void {
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }
}
