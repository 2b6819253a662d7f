/**
 * kill -9 of any one service at any time: it is started again, the run finishes, the ledger balances, no trial is
 * counted twice. Each test is a whole short run; the service dies while trials depend on it.
 */
import { TrialState } from "@mortise/contracts";
import { expect, test } from "vitest";
import { type Moment, moment } from "./in-flight.js";
import { expectFinished, startShortRun } from "./short-run.js";

/** Agents are talking to the model, and some trials are through: there is history to lose as well. */
const RUNNING: Moment = { trials: 2, state: TrialState.RUNNING, ended: 4 };
const VERIFYING: Moment = { trials: 1, state: TrialState.VERIFYING, ended: 2 };
/** The first step is being formed or taken. */
const TRAINING: Moment = { trials: 1, state: TrialState.RUNNING, ended: 16 };

test.each([
  ["proxy", RUNNING],
  ["sandbox-manager", RUNNING],
  ["verifier", VERIFYING],
  ["scheduler", RUNNING],
  ["trainer", TRAINING],
  ["archiver", RUNNING],
  ["nats-server", RUNNING],
] as const)("%s", async (service, when) => {
  const run = await startShortRun();
  const pending = await moment(run, when);
  expect(pending).toBeGreaterThanOrEqual(when.trials);
  process.kill(run.pidOf(service), "SIGKILL");

  const { report } = await expectFinished(run, await run.ended);
  const restarts = new Map(report.services.map(({ name, restarts }) => [name, restarts]));
  expect(restarts.get(service)).toBe(1);
});
