import { type EvaluationRecord, Outcome, RunPhase, TrialState } from "@mortise/contracts";
import { afterEach, describe, expect, it } from "vitest";
import { type FixtureOptions, PROTOCOL, RunFixture } from "./run-fixture.js";
import { closedCount } from "./simulated-world.js";

/** Two attempts at each of three tasks. */
const ATTEMPTS = 6;

describe("a run that is an evaluation alone, on a real bus with fake peers", { timeout: 120_000 }, () => {
  let fixture: RunFixture;
  afterEach(() => fixture.stop());

  /** Nobody trains, and nobody publishes weights. */
  async function start(options: FixtureOptions = {}): Promise<RunFixture> {
    fixture = await RunFixture.create({ isEvaluation: true, attempts: ATTEMPTS, ...options });
    await fixture.startPeers({ withTrainer: false });
    return fixture;
  }

  async function evaluations(): Promise<EvaluationRecord[]> {
    return (await fixture.metrics()).flatMap(({ record }) =>
      record.case === "evaluation" ? [record.value] : [],
    );
  }

  it("takes every attempt to its verdict under version 0 and is finished", async () => {
    const { manager } = await start({ slots: 2, warm: 1 });
    fixture.startScheduler();
    await fixture.finished();
    const { WARM_START, EVALUATE_BEFORE, TRAIN, EVALUATE_AFTER, FINISHED } = RunPhase;
    expect(await fixture.phases()).toEqual([WARM_START, EVALUATE_BEFORE, TRAIN, EVALUATE_AFTER, FINISHED]);
    const [only, ...others] = await evaluations();
    expect(others).toEqual([]);
    expect(only).toMatchObject({ name: "evaluation", version: 0n, attempts: ATTEMPTS, invalid: 0 });
    expect(only!.tasks.map(({ attempts }) => attempts)).toEqual([2, 2, 2]);
    expect(JSON.parse(only!.protocol)).toMatchObject(PROTOCOL);
    expect(await fixture.groups()).toEqual([]);
    expect(closedCount(await fixture.transitions()).size).toBe(ATTEMPTS);
    expect(manager.maxRunning).toBeLessThanOrEqual(2);
    expect(await fixture.endScheduler("SIGTERM")).toBe(0);
  });

  it("repeats a lost attempt, and what is lost for good is no attempt that failed", async () => {
    const { manager } = await start();
    const isLost = (trial: string) => trial === "evaluation-0-1" || trial.startsWith("evaluation-2-0");
    manager.failsSetup = (trial) => (isLost(trial) ? "MORTISE_SANDBOX_SETUP" : undefined);
    fixture.startScheduler();
    await fixture.finished();
    const [only] = await evaluations();
    expect(only).toMatchObject({ attempts: ATTEMPTS - 1, invalid: 1, expected: ATTEMPTS });
    expect(only).toMatchObject({ lostInfrastructure: 1, lostTask: 0, lostTamper: 0, retries: 3 });
    expect(only!.tasks.map(({ attempts }) => attempts)).toEqual([2, 2, 1]);
    const closed = (await fixture.transitions()).filter(({ state }) => state === TrialState.CLOSED);
    const last = new Map(closed.map(({ trial, outcome, reward }) => [trial, { outcome, reward }]));
    // Once, then its retry; and one of which every retry was lost too: without an outcome and without a reward.
    expect(last.get("evaluation-0-1")).toEqual({ outcome: Outcome.UNSPECIFIED, reward: undefined });
    expect(last.get("evaluation-0-1r1")?.reward).toBeDefined();
    for (const trial of ["evaluation-2-0", "evaluation-2-0r1", "evaluation-2-0r2"])
      expect(last.get(trial)).toEqual({ outcome: Outcome.UNSPECIFIED, reward: undefined });
    expect(last.size).toBe(ATTEMPTS + 1 + 2);
  });

  it("goes on after SIGKILL: nothing twice, nothing lost", async () => {
    await start({ slots: 1, warm: 0 });
    for (const ended of [1, 3]) {
      fixture.startScheduler();
      await fixture.until(async () => closedCount(await fixture.transitions()).size >= ended);
      await fixture.endScheduler("SIGKILL");
    }
    fixture.startScheduler();
    await fixture.finished();
    const [only] = await evaluations();
    expect(only).toMatchObject({ attempts: ATTEMPTS, invalid: 0 });
    const counts = closedCount(await fixture.transitions());
    expect([...counts.keys()].filter((trial) => !trial.includes("r")).length).toBe(ATTEMPTS);
    for (const times of counts.values()) expect(times).toBe(1);
  });
});
