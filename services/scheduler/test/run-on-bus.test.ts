import {
  ExclusionReason,
  GroupDisposition,
  MemberDisposition,
  Outcome,
  RunPhase,
  TerminationReason,
  TrialState,
} from "@mortise/contracts";
import { afterEach, describe, expect, it } from "vitest";
import { type FixtureOptions, RunFixture } from "./run-fixture.js";
import { closedCount } from "./simulated-world.js";

const PHASES = [
  RunPhase.WARM_START,
  RunPhase.EVALUATE_BEFORE,
  RunPhase.TRAIN,
  RunPhase.EVALUATE_AFTER,
  RunPhase.FINISHED,
];

describe("a scheduler process on a real bus with fake peers", { timeout: 120_000 }, () => {
  let fixture: RunFixture;
  afterEach(() => fixture.stop());

  async function start(options: FixtureOptions = {}): Promise<RunFixture> {
    fixture = await RunFixture.create(options);
    await fixture.startPeers();
    return fixture;
  }

  it("runs every phase; groups, books and evaluations are complete", async () => {
    const { manager, trainer, proxy } = await start();
    fixture.startScheduler();
    await fixture.finished();
    expect(await fixture.phases()).toEqual(PHASES);

    const groups = await fixture.groups();
    expect(groups.map(({ group }) => group).sort()).toEqual(["g0", "g1", "g2", "g3", "g4", "g5"]);
    for (const { disposition, members, fence } of groups) {
      expect(disposition).toBe(GroupDisposition.ADMITTED);
      expect(fence).toBeGreaterThan(0n);
      expect(members).toHaveLength(4);
      for (const member of members) {
        expect(member.disposition).toBe(MemberDisposition.TRAIN);
        expect(member.turnSequences).toHaveLength(1);
        expect(member.sealSequence).toBeGreaterThan(member.turnSequences[0]!);
      }
    }
    expect(trainer.consumed).toHaveLength(6);
    expect(trainer.maxStaleness).toBeLessThanOrEqual(1);
    expect(trainer.wasted).toEqual([]);
    expect(manager.maxRunning).toBeLessThanOrEqual(4);

    // What it heard came true: nothing but tasks of the index, and every launch was of one of them.
    expect(manager.prewarmed.length).toBeGreaterThan(0);
    expect(manager.prewarmed[0]!.length).toBeLessThanOrEqual(8);

    const transitions = await fixture.transitions();
    const states = transitions.filter(({ trial }) => trial === "g0-0").map(({ state }) => state);
    expect(states).toEqual([
      TrialState.LAUNCHED,
      TrialState.WARM,
      TrialState.RUNNING,
      TrialState.SEALED,
      TrialState.VERIFYING,
      TrialState.CLOSED,
    ]);
    expect(closedCount(transitions).size).toBe(6 * 4 + 2 * 6);

    const evaluations = (await fixture.metrics()).flatMap(({ record }) =>
      record.case === "evaluation" ? [record.value] : [],
    );
    expect(evaluations.map(({ name, version }) => [name, version])).toEqual([
      ["before", 0n],
      ["after", 2n],
    ]);
    for (const { attempts, invalid, tasks } of evaluations) {
      expect([attempts, invalid]).toEqual([6, 0]);
      expect(tasks.map((score) => score.attempts)).toEqual([2, 2, 2]);
    }
    const keys = (name: string) =>
      [...proxy.opened].filter(([trial]) => trial.startsWith(name)).map(([, { rngKey }]) => rngKey);
    expect(keys("before").sort()).toEqual(keys("after").sort());
    expect(keys("before")).toContain("7/eval/heldout-2/1");

    const status = await fixture.status();
    expect(status).toMatchObject({ phase: RunPhase.FINISHED, version: 2n, trialsEnded: 36n, running: 0 });
    expect(await fixture.endScheduler("SIGTERM")).toBe(0);
  });

  it("repeats infrastructure failures in the same place, and excludes the place when they persist", async () => {
    const { manager } = await start({ steps: 1, groupsPerStep: 2, attempts: 0 });
    // One place fails once, another as often as it is tried.
    manager.failsSetup = (trial) =>
      trial === "g0-1" || trial.startsWith("g1-3") ? "MORTISE_SANDBOX_SETUP" : undefined;
    fixture.startScheduler();
    await fixture.finished();
    const [g0, g1] = (await fixture.groups()).sort((a, b) => Number(a.ordinal - b.ordinal));
    const standing = (group: typeof g0, place: number) =>
      group!.members
        .filter(({ slotInGroup }) => slotInGroup === place)
        .map(({ trial, disposition, termination }) => [trial, disposition, termination]);
    const { EXCLUDED, TRAIN } = MemberDisposition;
    const { SETUP_FAILED, COMPLETED } = TerminationReason;
    expect(standing(g0, 1)).toEqual([
      ["g0-1", EXCLUDED, SETUP_FAILED],
      ["g0-1r1", TRAIN, COMPLETED],
    ]);
    expect(standing(g1, 3)).toEqual([
      ["g1-3", EXCLUDED, SETUP_FAILED],
      ["g1-3r1", EXCLUDED, SETUP_FAILED],
      ["g1-3r2", EXCLUDED, SETUP_FAILED],
    ]);
    expect(g1!.disposition).toBe(GroupDisposition.ADMITTED);
    const retry = (await fixture.transitions()).find(({ trial }) => trial === "g0-1r1")!;
    expect([retry.retryOf, retry.retry, retry.slotInGroup]).toEqual(["g0-1", 1, 1]);
  });

  it("does not repeat a trial whose task cannot be prepared anywhere", async () => {
    const { manager } = await start({ steps: 1, groupsPerStep: 1, attempts: 0 });
    manager.failsSetup = (trial) => (trial.startsWith("g0-3") ? "MORTISE_TASK_BUILD" : undefined);
    fixture.startScheduler();
    await fixture.finished();
    const [group] = await fixture.groups();
    expect(group!.members.map(({ trial }) => trial).sort()).toEqual(["g0-0", "g0-1", "g0-2", "g0-3"]);
    expect(group!.members.find(({ trial }) => trial === "g0-3")).toMatchObject({
      disposition: MemberDisposition.EXCLUDED,
      exclusion: ExclusionReason.TASK,
      termination: TerminationReason.SETUP_FAILED,
      outcome: Outcome.INVALID_TASK,
    });
    expect(manager.launches.filter((trial) => trial.startsWith("g0-3"))).toEqual(["g0-3"]);
  });

  it("goes on after SIGKILL: the same groups, no trial twice, staleness within the bound", async () => {
    const { manager, trainer } = await start({ steps: 4, groupsPerStep: 3, attempts: 6 });
    let kills = 0;
    for (const isDue of [
      () => manager.launches.length > 2,
      () => trainer.version >= 1,
      () => trainer.version >= 2,
    ]) {
      fixture.startScheduler();
      await fixture.until(isDue);
      await fixture.endScheduler("SIGKILL");
      kills++;
    }
    fixture.startScheduler();
    await fixture.finished();
    expect(kills).toBe(3);
    expect(await fixture.phases()).toEqual(PHASES);
    const groups = await fixture.groups();
    expect(groups.map(({ ordinal }) => Number(ordinal)).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, i) => i),
    );
    const transitions = await fixture.transitions();
    const closed = closedCount(transitions);
    expect(Math.max(...closed.values())).toBe(1);
    expect(closed.size).toBe(new Set(transitions.map(({ trial }) => trial)).size);
    expect(new Set(manager.launches).size).toBe(manager.launches.length);
    expect(trainer.consumed).toHaveLength(12);
    expect(trainer.maxStaleness).toBeLessThanOrEqual(1);
    expect(trainer.wasted).toEqual([]);
    const fences = new Set(transitions.map(({ fence }) => fence));
    expect(fences.size).toBeGreaterThan(1);
  });

  it("starts no group for new weights before engines have them: nothing is sampled only to be too old", async () => {
    // Room for everything: what is admitted is launched at once.
    const { trainer } = await start({ steps: 4, attempts: 0, slots: 64 });
    trainer.swapMs = 300;
    fixture.startScheduler();
    await fixture.finished();
    expect(trainer.consumed).toHaveLength(12);
    expect(trainer.maxStaleness).toBe(1);
    expect(trainer.wasted).toEqual([]);
  });

  it("drains on SIGTERM and a later start finishes the run", async () => {
    const { manager } = await start({ steps: 2, attempts: 0 });
    fixture.startScheduler();
    await fixture.until(() => manager.launches.length > 6);
    expect(await fixture.endScheduler("SIGTERM")).toBe(0);
    const open = (await fixture.transitions()).reduce((live, { trial, state }) => {
      if (state === TrialState.CLOSED) live.delete(trial);
      else live.add(trial);
      return live;
    }, new Set<string>());
    expect([...open]).toEqual([]); // nothing was left half-way
    fixture.startScheduler();
    await fixture.finished();
    expect(await fixture.groups()).toHaveLength(6);
  });

  it("takes a trial whose sandbox falls silent for lost, and repeats it", async () => {
    const rollout = "agentTimeoutMs = 1\ncleanupTimeoutMs = 1";
    const { manager } = await start({ steps: 1, groupsPerStep: 1, attempts: 0, rollout });
    manager.isSilent = (trial) => trial === "g0-2";
    fixture.startScheduler();
    await fixture.finished();
    const [group] = await fixture.groups();
    expect(group!.members.find(({ trial }) => trial === "g0-2")).toMatchObject({
      disposition: MemberDisposition.EXCLUDED,
      termination: TerminationReason.SANDBOX_LOST,
    });
    expect(group!.members.some(({ trial }) => trial === "g0-2r1")).toBe(true);
  });

  it("refuses a run that was started with another configuration", async () => {
    await start({ steps: 1, attempts: 0 });
    const kv = await fixture.bus.kv("runs");
    fixture.startScheduler();
    await fixture.finished();
    await fixture.endScheduler("SIGKILL");
    const stored = JSON.parse(new TextDecoder().decode((await kv.get("r1"))!.value));
    stored.config.rollout.groupSize = 5;
    await kv.put("r1", new TextEncoder().encode(JSON.stringify(stored)));
    fixture.startScheduler();
    expect(await fixture.exitCode()).toBe(2);
    expect(fixture.output).toContain("MORTISE_OPERATOR_RUN_EXISTS");
    expect(fixture.output).toContain("rollout.groupSize");
  });
});
