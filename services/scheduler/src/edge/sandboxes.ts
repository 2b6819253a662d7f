/**
 * Owns the two questions asked of a sandbox-manager: start this agent, cancel this trial.
 * Does not launch (that is work on the bus) and does not hear reports (facts.ts).
 */
import { type MortiseError, SandboxService, TerminationReason } from "@mortise/contracts";
import { backoff, type Clock, fromUnknown, type Log, sleep } from "@mortise/kernel";
import type { RunMessage } from "../run/messages.js";
import type { Trial } from "../trial/trial.js";
import type { Peers } from "./peers.js";

export interface SandboxesOptions {
  readonly run: string;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Log;
  trialNow(id: string): Trial | undefined;
}

const CALL_MS = 5_000;
const RETRY = { baseMs: 50, maxMs: 1_000 };
/** Longer than a presence entry lives: then an address that is not live is gone, not merely late. */
const GONE_AFTER_MS = 12_000;
const REPORT_LAG_MS = 2_000;

export class Sandboxes {
  readonly #options: SandboxesOptions;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /**
   * Asks until it is answered. A lease the manager does not know, or a manager that is gone, is a lost sandbox:
   * the message to send. Undefined when the agent was started or the trial moved on.
   */
  async startAgent(trial: Trial): Promise<RunMessage | undefined> {
    const { run, peers, clock, signal, log } = this.#options;
    const { address, lease } = trial.sandbox!;
    const since = clock.now();
    for (let attempt = 0; !signal.aborted && this.#isRunning(trial); attempt++) {
      try {
        const request = { run, trial: trial.id, lease };
        await peers.client(SandboxService, address).startAgent(request, { deadlineMs: CALL_MS, signal });
        return undefined;
      } catch (error) {
        const known = fromUnknown(error, "MORTISE_TRANSPORT_UNAVAILABLE", `sandbox-manager at ${address}`);
        if (isLost(known)) {
          // A lease that ended just now has its report on the way: that says more than "unknown".
          await sleep(REPORT_LAG_MS, clock, signal).catch(() => {});
          return this.#isRunning(trial) ? lost(trial, known.message) : undefined;
        }
        log.warn({ event: "sandbox-manager.unanswered", trial: trial.id, err: known });
      }
      if (clock.now() - since > GONE_AFTER_MS && !peers.isLive("sandbox-manager", address)) {
        return lost(trial, `the sandbox-manager at ${address} is gone`);
      }
      await sleep(backoff(attempt, RETRY), clock, signal).catch(() => {});
    }
    return undefined;
  }

  /** Tells the manager to end the trial; if it cannot be told, its own timeouts end it. */
  async cancel(trial: Trial, reason: string): Promise<void> {
    if (trial.sandbox === undefined) return;
    const { run, peers, log } = this.#options;
    const { address } = trial.sandbox;
    try {
      await peers
        .client(SandboxService, address)
        .cancelTrial({ run, trial: trial.id, reason }, { deadlineMs: CALL_MS });
    } catch (error) {
      const known = fromUnknown(error, "MORTISE_TRANSPORT_UNAVAILABLE", `sandbox-manager at ${address}`);
      log.warn({ event: "sandbox-manager.unanswered", trial: trial.id, err: known });
    }
  }

  #isRunning(trial: Trial): boolean {
    return this.#options.trialNow(trial.id)?.stage === "running";
  }
}

function isLost(error: MortiseError): boolean {
  return error.code === "MORTISE_SANDBOX_UNKNOWN_LEASE" || error.code === "MORTISE_SANDBOX_LOST";
}

function lost(trial: Trial, reason: string): RunMessage {
  const termination = TerminationReason.SANDBOX_LOST;
  return { kind: "trial", trial: trial.id, fact: { kind: "failed", termination, reason, stages: [] } };
}
