/** Ctrl-C, and the death of the supervisor itself: nothing is left on the machine, and the run can be resumed. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { TrialState } from "@mortise/contracts";
import { readSiteConfig } from "@mortise/kernel";
import { expect, test } from "vitest";
import { type Moment, moment } from "./in-flight.js";
import { nothing, remainsOf } from "./remains.js";
import { expectFinished, resumeRun, startShortRun } from "./short-run.js";

const MID_RUN: Moment = { trials: 2, state: TrialState.RUNNING, ended: 4 };
const SIGINT_EXIT = 130;
/** Longer than services and nats-server are given after the supervisor's death. */
const ORPHANS_END_MS = 90_000;

test("Ctrl-C drains, leaves nothing, and --resume finishes the run", async () => {
  const run = await startShortRun();
  await moment(run, MID_RUN);
  await expectSomething(run.directory);
  run.signal("SIGINT");
  const { code, stderr } = await run.ended;
  expect(code, stderr).toBe(SIGINT_EXIT);
  expect(remainsOf(run.directory)).toEqual(nothing);

  const resumed = await resumeRun(run.runId);
  await expectFinished(resumed, await resumed.ended);
});

test("kill -9 of the supervisor: its processes end, and --resume sweeps the rest and finishes the run", async () => {
  const run = await startShortRun();
  await moment(run, MID_RUN);
  await expectSomething(run.directory);
  run.signal("SIGKILL");
  await run.ended;
  const deadline = performance.now() + ORPHANS_END_MS;
  while (remainsOf(run.directory).processes.length > 0 && performance.now() < deadline) await sleep(500);
  expect(remainsOf(run.directory).processes).toEqual([]);

  const resumed = await resumeRun(run.runId);
  await expectFinished(resumed, await resumed.ended);
});

/** Or finding nothing afterwards would prove nothing. Only the runc backend makes mounts and control groups. */
async function expectSomething(directory: string): Promise<void> {
  const { processes, mounts, cgroups } = remainsOf(directory);
  expect(processes.length).toBeGreaterThan(0);
  const { sandbox } = await readSiteConfig(join(directory, "site.toml"));
  if (sandbox.backend !== "runc") return;
  expect(mounts.length).toBeGreaterThan(0);
  expect(cgroups.length).toBeGreaterThan(0);
}
