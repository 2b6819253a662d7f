/** Owns waiting for the moment at which a run has something to lose. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { filter, TrialState, TrialTransitionSchema } from "@mortise/contracts";
import type { Bus } from "@mortise/kernel";
import type { QuickstartProcess } from "./quickstart-process.js";
import { observe } from "./records.js";

const LOOK_INTERVAL_MS = 20;

/**
 * Resolves with the bus of a started run, or rejects when the command ended before it had one. The run file is
 * written when the streams are there and before any service is started.
 */
export async function busOf(run: QuickstartProcess): Promise<Bus> {
  while (!existsSync(join(run.directory, "run.toml"))) {
    const early = await Promise.race([run.ended, sleep(LOOK_INTERVAL_MS)]);
    if (early !== undefined) throw new Error(`the run ended with ${early.code}: ${early.stderr}`);
  }
  return observe(run.directory);
}

export interface Moment {
  /** This many trials are in this state at once … */
  readonly trials: number;
  readonly state: TrialState;
  /** … after this many have ended. */
  readonly ended?: number;
  /** Counts only trials whose session lives there. */
  readonly proxyAddress?: string;
}

/** Resolves at the moment, with the number of trials in that state; rejects when the run ended before it came. */
export async function moment(run: QuickstartProcess, wanted: Moment): Promise<number> {
  const bus = await busOf(run);
  const reached = Promise.withResolvers<number>();
  const states = new Map<string, TrialState>();
  const count = (state: TrialState) => [...states.values()].filter((one) => one === state).length;
  const following = await bus.follow({
    stream: "TRIALS",
    filters: [filter.trialStates(run.runId)],
    from: "first",
    schema: TrialTransitionSchema,
    onMessage: ({ trial, state, proxyAddress }) => {
      if (proxyAddress === (wanted.proxyAddress ?? proxyAddress)) states.set(trial, state);
      const ended = count(TrialState.CLOSED);
      if (count(wanted.state) >= wanted.trials && ended >= (wanted.ended ?? 0))
        reached.resolve(count(wanted.state));
    },
  });
  try {
    const early = run.ended.then(({ code, stderr }) => {
      throw new Error(`the run ended with ${code} before the moment came: ${stderr}`);
    });
    return await Promise.race([reached.promise, early]);
  } finally {
    await following.stop().catch(() => {});
    await bus.close().catch(() => {});
  }
}
