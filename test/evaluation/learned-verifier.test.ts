/**
 * A learned verifier from end to end: the bundled tasks, attempts sampled by the embedded policy while it learns, judged by
 * their hidden tests in sandboxes, archived; a verifier trained from that policy and used on tasks it has not
 * seen. What it reaches depends on the policy and is not asserted; how it comes about and how it is counted is.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectPaths } from "../../apps/cli/src/site/project-paths.js";
import { mortise } from "./mortise.js";

/** A policy that solves some attempts, and groups enough that some tasks have both outcomes. */
const QUICKSTART = [
  ...["--steps", "1", "--eval-attempts", "0", "--set", "warmStart.steps=120"],
  ...["--set", "rollout.groupSize=8", "--set", "trainer.groupsPerStep=6"],
];

interface Row {
  readonly task: string;
  readonly resolved: boolean;
  readonly p_yes: number;
}

const directory = mkdtempSync(join(tmpdir(), "mortise-learned-verifier-"));
let run = "";
beforeAll(async () => {
  const { code, json, stderr } = await mortise("quickstart", ...QUICKSTART);
  expect(code, stderr).toBe(0);
  run = json.runId;
});
afterAll(() => {
  if (run !== "") rmSync(join(projectPaths().runs, run), { recursive: true, force: true });
  rmSync(directory, { recursive: true, force: true });
});

const rowsOf = (path: string): Row[] =>
  readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);

/** Chance that n attempts drawn without replacement are all unresolved. */
function allUnresolved(rows: readonly Row[], n: number): number {
  const unresolved = rows.filter(({ resolved }) => !resolved).length;
  return Array.from({ length: n }, (_, at) => Math.max(unresolved - at, 0) / (rows.length - at)).reduce(
    (product, share) => product * share,
    1,
  );
}

test("attempts of a run teach it, and it scores attempts at other tasks", async () => {
  const policy = join(projectPaths().runs, run, "state", "trainer", run, "1");
  const [out, scores, again] = ["verifier", "scores.jsonl", "again.jsonl"].map((name) =>
    join(directory, name),
  ) as [string, string, string];
  const trained = await mortise(
    ...["learned-verifier", "train", run, "--checkpoint", policy, "--out", out, "--scores", scores],
    ...["--held-out", "0.4", "--epochs", "2"],
  );
  expect(trained.code, trained.stderr).toBe(0);
  const { manifest, sets, leftOut } = trained.json;
  const { data, trainedTasks, heldOutTasks } = manifest;
  expect(leftOut).toEqual([]);
  expect(data.examples).toBeGreaterThan(0);
  expect(data.resolved).toBe(data.unresolved);
  expect(data.sources).toEqual([{ run, set: "training", examples: data.examples }]);
  expect(Number.isFinite(manifest.training.loss)).toBe(true);

  const rows = rowsOf(scores);
  const tasks = [...new Set(rows.map(({ task }) => task))];
  expect(tasks.sort()).toEqual(heldOutTasks);
  for (const task of tasks) expect(trainedTasks).not.toContain(task);
  for (const { p_yes } of rows) expect(p_yes > 0 && p_yes < 1).toBe(true);
  expect(sets).toMatchObject([{ run, set: "training", tasks: tasks.length, attempts: rows.length }]);
  for (const { n, best, oracle } of sets[0].scaling) {
    const expected = tasks.map((task) => {
      const own = rows.filter((row) => row.task === task);
      return 1 - allUnresolved(own, n);
    });
    expect(oracle).toBeCloseTo(expected.reduce((sum, value) => sum + value, 0) / tasks.length, 9);
    expect(best).toBeLessThanOrEqual(oracle + 1e-9);
  }

  const scored = await mortise("learned-verifier", "score", run, "--verifier", out, "--scores", again);
  expect(scored.code, scored.stderr).toBe(0);
  const isHeldOut = ({ task }: Row) => heldOutTasks.includes(task);
  expect(rowsOf(again).filter(isHeldOut)).toEqual(rows);
});
