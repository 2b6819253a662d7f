/**
 * Owns asking proxies for sessions: open one, seal one. Both keep trying, since only a proxy can answer, until
 * the trial no longer wants the answer. Does not know what a session captures.
 */
import { ProxyService, type RunConfig } from "@mortise/contracts";
import { backoff, type Clock, fromUnknown, type Log, sleep } from "@mortise/kernel";
import type { RunMessage } from "../run/messages.js";
import { stageLimits } from "../run/stage-limits.js";
import type { Trial } from "../trial/trial.js";
import type { Peers } from "./peers.js";

export interface SessionOptions {
  readonly config: RunConfig;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Log;
  /** The trial as it is now; undefined when it is no longer live. */
  trialNow(id: string): Trial | undefined;
}

const CALL_MS = 10_000;
const RETRY = { baseMs: 50, maxMs: 2_000 };
/** A warning for each failure would flood the log while a proxy restarts. */
const WARN_EVERY = 10;

export class Sessions {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The "opened" message, or undefined when the trial left its stage meanwhile. */
  open(trial: Trial): Promise<RunMessage | undefined> {
    const { rollout, run } = this.#options.config;
    return this.#persist(trial, async (address) => {
      const reply = await this.#options.peers.client(ProxyService, address).openSession(
        {
          run: run.id,
          trial: trial.id,
          evaluation: trial.isEvaluation,
          rngKey: trial.rngKey,
          // A trial's model API is its sandbox's listener; whoever else got its token is refused (DESIGN §7). A remote
          // runtime has no listener of ours; runs that take one have said that nothing about it is proved.
          throughListener: rollout.unproven === "refuse",
          sampling: { temperature: rollout.temperature, maxTokens: rollout.maxTokensPerTurn },
          budget: {
            turns: rollout.maxTurns,
            promptTokens: BigInt(rollout.maxPromptTokens),
            responseTokens: BigInt(rollout.maxResponseTokens),
            // Counted from the agent's first call: preparing the sandbox and waiting for a slot are not its time.
            wallClockMs: stageLimits(rollout).agentMs,
            turnsWithoutCall: rollout.maxTurnsWithoutCall,
          },
        },
        { deadlineMs: CALL_MS, signal: this.#options.signal },
      );
      const { token, modelAddress, model, listenerKey } = reply;
      const grant = { token, modelAddress, model, listenerKey };
      const fact = { kind: "opened", session: reply.session, proxyAddress: address, grant } as const;
      return { kind: "trial", trial: trial.id, fact };
    });
  }

  /** The "sealed" message, or undefined when the trial left its stage meanwhile. */
  seal(trial: Trial): Promise<RunMessage | undefined> {
    const { run } = this.#options.config;
    return this.#persist(trial, async (address) => {
      const { seal, sealSequence } = await this.#options.peers
        .client(ProxyService, address)
        .sealSession({ run: run.id, trial: trial.id }, { deadlineMs: CALL_MS, signal: this.#options.signal });
      if (seal === undefined) throw new Error(`the proxy at ${address} answered without a seal`);
      return { kind: "trial", trial: trial.id, fact: { kind: "sealed", seal, sequence: sealSequence } };
    });
  }

  /** Tries the trial's own replica first, then whichever is live: any replica can recover a session. */
  async #persist<T>(trial: Trial, call: (address: string) => Promise<T>): Promise<T | undefined> {
    const { peers, clock, signal, log } = this.#options;
    for (let attempt = 0; !signal.aborted && this.#isWanted(trial); attempt++) {
      const own = trial.session?.proxyAddress;
      const address = own !== undefined && peers.isLive("proxy", own) ? own : peers.next("proxy");
      try {
        if (address !== undefined) return await call(address);
      } catch (error) {
        const known = fromUnknown(error, "MORTISE_TRANSPORT_UNAVAILABLE", `proxy at ${address}`);
        if (attempt % WARN_EVERY === 0) log.warn({ event: "proxy.unanswered", trial: trial.id, err: known });
      }
      await sleep(backoff(attempt, RETRY), clock, signal).catch(() => {});
    }
    return undefined;
  }

  #isWanted(trial: Trial): boolean {
    return this.#options.trialNow(trial.id)?.stage === trial.stage;
  }
}
