/** Evaluations that are killed or interrupted go on where they were: nothing that has ended is repeated, nothing is lost. */
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TrialTransition } from "@mortise/contracts";
import { planDemoTasks } from "@mortise/tasks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { preparePolicy } from "../../apps/cli/src/quickstart/prepare-policy.js";
import { Mortise, mortise, schedulerOf } from "./mortise.js";
import { ATTEMPTS, type Attempt, TASKS, World } from "./world.js";

const world = new World();
beforeAll(() => world.start());
afterAll(() => world.stop());

const EXPECTED = TASKS * ATTEMPTS;
const SOLVES: readonly Attempt[] = ["0-0", "1-0", "1-1", "3-1"];
/** Long enough that others are under way when one has ended. */
const REPLY_MS = 1_500;
const COUNTS = { expected: EXPECTED, executed: EXPECTED, resolved: SOLVES.length, lost: 0 };

function started(run: string, command: "eval" | "infer" = "infer"): Mortise {
  const given = ["--protocol", world.protocol(), "--concurrency", "2"];
  return new Mortise([command, ...given, ...world.measured(run, world.script(SOLVES, [], REPLY_MS))]);
}

const named = (transitions: readonly TrialTransition[]) =>
  transitions.map(({ trial, atMs }) => `${trial} at ${atMs}`).sort();

/** What had ended before is as it was, and every place has exactly one trial that counts. */
async function expectContinued(run: string, before: readonly TrialTransition[]): Promise<void> {
  const closed = await world.closed(run);
  expect(named(closed)).toEqual(expect.arrayContaining(named(before)));
  expect(new Set(closed.map(({ trial }) => trial)).size).toBe(closed.length);
  const counted = world.rows(run, "attempts.jsonl").filter((row) => row.counted);
  expect(new Set(counted.map(({ task, attempt }) => `${task} ${attempt}`)).size).toBe(EXPECTED);
  expect(counted).toHaveLength(EXPECTED);
}

test("SIGKILL of the command", async () => {
  const run = world.newRun();
  const first = started(run);
  await world.untilClosed(run, 2, first);
  first.signal("SIGKILL");
  await first.ended;
  expect(world.hasResult(run)).toBe(false);
  const before = await world.closed(run);
  expect(before.length).toBeLessThan(EXPECTED);

  const { code, json, stderr } = await mortise("infer", "--resume", run, "--concurrency", "2");
  expect(code, stderr).toBe(0);
  expect(json.attempts).toMatchObject(COUNTS);
  await expectContinued(run, before);
});

test("SIGKILL of the scheduler", async () => {
  const run = world.newRun();
  const first = started(run, "eval");
  await world.untilClosed(run, 2, first);
  const before = await world.closed(run);
  process.kill(schedulerOf(join(world.runDirectory(run), "run.toml")), "SIGKILL");

  const { code, json, stderr } = await first.ended;
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("scheduler ended");
  expect(json.attempts).toMatchObject(COUNTS);
  await expectContinued(run, before);
});

test("Ctrl-C: what has ended is written, and said not to be all", async () => {
  const run = world.newRun();
  const first = started(run);
  await world.untilClosed(run, 2, first);
  first.signal("SIGINT");
  const cut = await first.ended;
  expect(cut.code, cut.stderr).toBe(130);
  expect(cut.json).toMatchObject({ isComplete: false, interrupted: "SIGINT" });
  const before = await world.closed(run);
  const { executed, expected, open, lost } = cut.json.attempts;
  expect({ expected, lost, open }).toEqual({ expected: EXPECTED, lost: 0, open: EXPECTED - executed });
  expect(executed).toBeGreaterThanOrEqual(2);
  expect(executed).toBeLessThan(EXPECTED);

  const { code, json, stderr } = await mortise("infer", "--resume", run, "--concurrency", "2");
  expect(code, stderr).toBe(0);
  expect(json.attempts).toMatchObject(COUNTS);
  await expectContinued(run, before);
});

describe("a site of its own, with the embedded policy and the bundled harness", () => {
  const run = world.newRun();
  const checkpoint = join(world.directory, "demo");

  test("SIGKILL of the command, which was the supervisor of everything", async () => {
    const places = { checkpoint, demonstrations: join(world.directory, "demonstrations.jsonl") };
    await preparePolicy(places, planDemoTasks({ seed: 1, train: TASKS, heldOut: 0 }).train, 1);
    const limits = { maxTurns: 4, agentTimeoutMs: 120_000, verifyTimeoutMs: 120_000 };
    const protocol = world.protocol({ attempts: 6, sampling: { maxTokensPerTurn: 24 }, limits });
    const first = new Mortise([
      ...["eval", "--protocol", protocol, "--checkpoint", checkpoint, "--harness", "mini"],
      ...["--tasks", world.tasks, "--concurrency", "1", "--run-id", run],
    ]);
    while (!/^\d+:\d+ +[1-9]\d* of/m.test(first.stderr)) {
      if (first.hasEnded) throw new Error(`it ended first: ${first.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    first.signal("SIGKILL");
    await first.ended;
    expect(world.hasResult(run)).toBe(false);

    const { code, json, stderr } = await mortise("eval", "--resume", run, "--concurrency", "4");
    expect(code, stderr).toBe(0);
    const expected = 6 * TASKS;
    expect(json.attempts).toMatchObject({ expected, executed: expected, lost: 0 });
    const weights = createHash("sha256")
      .update(readFileSync(join(checkpoint, "model.safetensors")))
      .digest("hex");
    expect(json.model).toMatchObject({ engine: "embedded", weights: [weights] });
    // What had ended before the kill is told at once: it is in the streams of the site that was brought up again.
    const [, done] = /^\d+:\d+ +(\d+) of/m.exec(stderr)!;
    expect(Number(done)).toBeGreaterThan(0);
  });

  test("is read from its archive when it is down", async () => {
    const { code, json, stderr } = await mortise("report", run, "--checkpoint", checkpoint);
    expect(code, stderr).toBe(0);
    expect(json).toMatchObject({ source: "archive", protocol: { name: "test" } });
    rmSync(world.runDirectory(run), { recursive: true });
  });
});
