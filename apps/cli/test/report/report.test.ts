/** `mortise report` on records of a real nats-server, and on the archive a real archiver made of them. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Outcome } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RecordedRun, RUN, TRIALS } from "./recorded-run.js";

const CLI = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
const run = promisify(execFile);

let recorded: RecordedRun;
beforeAll(async () => {
  recorded = await RecordedRun.start();
  for (const trial of TRIALS) await recorded.record(trial);
  await recorded.makeArchive();
}, 120_000);
afterAll(() => recorded.stop());

async function report(...args: string[]) {
  const { stdout } = await run(process.execPath, [CLI, "report", ...args, "--json"]);
  return JSON.parse(stdout.trim().split("\n").at(-1)!);
}

describe("the report of a run", { timeout: 120_000 }, () => {
  test("streams and archive give the same", async () => {
    const place = ["--site", recorded.site, "--checkpoint", recorded.checkpoint];
    const live = await report(RUN, ...place);
    const archived = await report(RUN, ...place, "--archive", recorded.archive);
    expect(live.source).toBe("streams");
    expect(archived).toEqual({ ...live, source: "archive" });
    expect(live.sets.map((set: { set: string }) => set.set)).toEqual(["before", "training", "after"]);
  });

  test("counts lost trials and scores them never", async () => {
    const { sets, harnessVersions } = await report(RUN, "--site", recorded.site);
    expect(harnessVersions).toEqual(["2.1.332"]);
    expect(sets[1]).toMatchObject({
      trials: 4,
      byTermination: { completed: 3, "sandbox-lost": 1 },
      byVerdict: { resolved: 2, unresolved: 1, none: 1 },
      lost: { trials: 1, retried: 1, tasks: 0 },
      // The loss was repeated: no place is lost. What was to be done is not recorded here.
      places: { expected: null, executed: 3, resolved: 2, lost: 0, open: null, bounds: null },
      solving: { tasks: 1, attempts: 3, solved: 2, shapes: { mixed: 1 } },
      groups: { allPass: 0, allFail: 0, mixed: 1 },
      stagesMs: { setup: { count: 4, mean: 5 }, agent: { count: 4, mean: 100 } },
    });
    expect(sets[2]).toMatchObject({
      byVerdict: { resolved: 1, "invalid(infra)": 1 },
      lost: { trials: 1, retried: 0, tasks: 1 },
      places: { executed: 1, resolved: 1, lost: 1, lostBy: { infrastructure: 1 } },
      solving: { tasks: 1, attempts: 1, rate: 1 },
    });
  });

  test("the last two evaluations are compared on the tasks both have", async () => {
    const { comparison } = await report(RUN, "--site", recorded.site);
    expect(comparison).toMatchObject({
      from: { run: RUN, set: "before" },
      to: { run: RUN, set: "after" },
      tasks: 1,
      onlyBefore: 1,
      onlyAfter: 0,
      points: 100,
      pointsInterval: null,
      won: [{ task: "a", before: 0, after: 1 }],
    });
  });

  test("two sets of two runs, by name", async () => {
    const { comparison, other } = await report(RUN, RUN, "--site", recorded.site, "--set", "training");
    expect(other.run).toBe(RUN);
    expect(comparison).toMatchObject({ from: { set: "training" }, to: { set: "after" }, tasks: 1 });
    expect(comparison.points).toBeCloseTo(100 / 3, 10);
    await expect(report(RUN, RUN, "--site", recorded.site, "--set", "nowhere")).rejects.toMatchObject({
      stderr: expect.stringMatching(/MORTISE_OPERATOR_USAGE \(--set\)[\s\S]*before, training, after/),
    });
  });

  test("behaviour is read from the captured ids", async () => {
    const args = ["--site", recorded.site, "--checkpoint", recorded.checkpoint];
    const { behaviour } = await report(RUN, ...args);
    expect(behaviour[2]).toMatchObject({ set: "after", harness: "claude-code", trials: 2 });
    expect(behaviour[1]).toMatchObject({
      set: "training",
      harness: "claude-code",
      // The lost trial has no turn.
      trials: 3,
      callsPerTrial: 4 / 3,
      filesReadBeforeEdit: 1,
      reproducesFirst: 1,
      rereadsEdited: 1,
      runsTests: 1 / 3,
      testsAfterEdit: 0,
      explicitFinish: 1,
      solvedDespiteFailure: 0.5,
      malformedShare: 0,
    });
    expect((await report(RUN, "--site", recorded.site)).behaviourAbsent).toMatch(/checkpoint/);
  });

  test("a later judgement stands in the verdict's place", async () => {
    await recorded.regrade("g0-2", Outcome.RESOLVED);
    const { sets, regraded } = await report(RUN, "--site", recorded.site);
    expect(regraded).toBe(1);
    expect(sets[1]).toMatchObject({ byVerdict: { resolved: 3, none: 1 }, groups: { allPass: 1 } });
  });

  test("attempts can be chosen by a component of the verdicts", async () => {
    const { sets } = await report(
      RUN,
      "--site",
      recorded.site,
      "--score",
      "tests-passed-share",
      "--archive",
      recorded.archive,
    );
    const rounded = sets[1].scaling.map((point: Record<string, number>) =>
      [point.n, point.best, point.oracle].map((value) => Number(value!.toFixed(6))),
    );
    expect(rounded).toEqual([
      [1, 0.666667, 0.666667],
      [2, 1, 1],
      [3, 1, 1],
    ]);
    const unscored = await report(RUN, "--site", recorded.site, "--score", "no-such-component");
    expect(unscored.sets[1].scaling).toEqual([]);
  });

  test("what was expected comes from the run's configuration, and stands beside what was executed", async () => {
    await recorded.configure({
      policy: { checkpoint: recorded.checkpoint },
      rollout: { groupSize: 4, maxRetries: 0 },
      trainer: { steps: 2, groupsPerStep: 1 },
      evaluation: { attempts: 4 },
    });
    const { sets } = await report(RUN, "--site", recorded.site);
    expect(sets[1].places).toMatchObject({ expected: 8, executed: 3, open: 5 });
    expect(sets[2].places).toMatchObject({ expected: 4, executed: 1, resolved: 1, lost: 1, open: 2 });
    expect(sets[2].places.bounds).toEqual([0.25, 1]);
    const { stdout } = await run(process.execPath, [CLI, "report", RUN, "--site", recorded.site]);
    expect(stdout).toMatch(/places {6}1 resolved of 1 executed of 4 expected, 100\.0 % \[/);
    expect(stdout).toMatch(
      /1 given up \(1 infrastructure\), 2 open: of the expected between 25\.0 % and 100\.0 %/,
    );
  });

  test("a run nobody recorded is refused by name", async () => {
    await expect(report("nothing", "--site", recorded.site)).rejects.toMatchObject({
      stderr: expect.stringMatching(/MORTISE_OPERATOR_RUN_UNKNOWN \(runId\)/),
    });
  });

  test("reads on a terminal", async () => {
    const args = ["report", RUN, "--archive", recorded.archive, "--checkpoint", recorded.checkpoint];
    const { stdout } = await run(process.execPath, [CLI, ...args]);
    expect(stdout).toMatch(/training: 4 trials, 1 lost \(1 tried again/);
    expect(stdout).toMatch(/difference {2}\+100\.0 points/);
  });
});
