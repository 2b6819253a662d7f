/** Owns the run the tests kill things in, and what must hold when it has finished. */
import { expect } from "vitest";
import { type Ended, QuickstartProcess, type Report, reportOf } from "./quickstart-process.js";
import { expectCountedOnce, type Records, readRecords } from "./records.js";
import { nothing, remainsOf } from "./remains.js";
import { warmPolicy } from "./warm-policy.js";

const STEPS = 3;
const GROUP_SIZE = 4;

/** 3 steps of 4 groups of 4 trials: small, and still with several trials in every stage at once. */
const ARGS = [
  ...["--steps", String(STEPS), "--eval-attempts", "0"],
  ...["--set", `policy.checkpoint=${warmPolicy}`, "--set", "warmStart.steps=0"],
  ...["--set", `rollout.groupSize=${GROUP_SIZE}`, "--set", "trainer.groupsPerStep=4"],
  ...["--set", "rollout.slots=6", "--set", "rollout.warm=6"],
];

export const startShortRun = (): Promise<QuickstartProcess> => QuickstartProcess.start(ARGS);

export const resumeRun = (runId: string): Promise<QuickstartProcess> =>
  QuickstartProcess.start(["--resume", runId]);

/** The run has finished as if nothing had happened, and nothing of it is left running. */
export async function expectFinished(
  run: QuickstartProcess,
  ended: Ended,
): Promise<{ report: Report; records: Records }> {
  expect(ended.code, ended.stderr).toBe(0);
  const report = reportOf(ended);
  expect(report.steps).toBe(STEPS);
  const { sampled, trained, baselineOnly, excluded, unconsumed } = report.tokens;
  expect(trained).toBeGreaterThan(0);
  expect(trained + baselineOnly + excluded + unconsumed).toBe(sampled);
  expect(report.staleness.max).toBeLessThanOrEqual(report.staleness.bound);
  expect(remainsOf(run.directory)).toEqual(nothing);
  const records = await readRecords(run.directory, run.runId);
  expectCountedOnce(records, { steps: STEPS, groupSize: GROUP_SIZE });
  return { report, records };
}
