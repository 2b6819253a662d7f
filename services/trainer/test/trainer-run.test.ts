/** The trainer as a process on a real nats-server, with the permissions of its own user. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ExclusionReason, TrainerService, WeightsRecordSchema } from "@mortise/contracts";
import { findServices, rpcClient } from "@mortise/kernel";
import { createPolicyModel, openCheckpoint } from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { demonstrationRows } from "../src/compute/demonstrations.js";
import { COMMIT_PHASES } from "../src/index.js";
import { allAcknowledged, type GroupScript, ScriptedFleet, stepRecords } from "./support/scripted-fleet.js";
import { Site } from "./support/site.js";

const N_STEPS = COMMIT_PHASES.length;
const TOKENS_PER_STEP = 24;
const ALL_TOKENS = BigInt(N_STEPS * TOKENS_PER_STEP);
const TRAINER = `[trainer]
steps = ${N_STEPS}
groupsPerStep = 2
algorithm = "grpo"
aggregation = "token-mean"
epochs = 2
[trainer.optimiser]
learningRate = 1e-3
warmupUpdates = 2
beta1 = 0.9
beta2 = 0.99
weightDecay = 0
`;
/** Two groups of two trials for each step; as many steps as a commit has phases. */
const STEPS: readonly (readonly GroupScript[])[] = COMMIT_PHASES.map((_, step) => [
  { group: `g${2 * step}`, rewards: [1, 0] },
  { group: `g${2 * step + 1}`, rewards: [0, 1] },
]);

// Processes start slowly where cores are shared; nothing here asserts a time.
vi.setConfig({ testTimeout: 600_000 });

let site: Site;
beforeAll(async () => {
  site = await Site.start();
});
afterAll(() => site.stop());

async function announcements(run: string) {
  const found: { version: number; sha256: string; canaryNorm: number; object: string }[] = [];
  const following = await site.bus.follow({
    stream: "WEIGHTS",
    filters: [`mortise.v1.weights.${run}.*`],
    from: "first",
    schema: WeightsRecordSchema,
    onMessage: ({ record }) => {
      if (record.case !== "announced") return;
      const { version, sha256, canaryNorm, object } = record.value;
      found.push({ version: Number(version), sha256, canaryNorm, object });
    },
  });
  await following.caughtUp;
  await following.stop();
  return found;
}

describe("a run", () => {
  const run = "plain";
  let digests: string[];

  test("publishes one version a step, accounts for every token, and acknowledges what it consumed", async () => {
    await site.addRun(run, TRAINER);
    const trainer = site.startTrainer(run);
    const fleet = await ScriptedFleet.create(site.bus, run);
    await fleet.play(STEPS);
    await allAcknowledged(site.bus, run);

    const records = await stepRecords(site.bus, run);
    expect(records.map((record) => [Number(record.step), record.groups])).toEqual(
      STEPS.map((groups, i) => [i + 1, groups.map(({ group }) => group)]),
    );
    const last = records.at(-1)!;
    expect(last.ledger).toMatchObject({
      sampled: ALL_TOKENS,
      trained: ALL_TOKENS,
      baselineOnly: 0n,
      unconsumed: 0n,
      excluded: [],
    });
    for (const record of records) {
      expect(record.staleness).toMatchObject({ bound: 1, max: 0 });
      expect(Number(record.consistency!.tokens)).toBe(TOKENS_PER_STEP);
      expect(record.consistency!.maxAbsDelta).toBeGreaterThan(0);
      expect(record.consistency!.maxAbsDelta).toBeLessThan(1e-4);
      expect(Number(record.consistency!.independentTokens)).toBe(TOKENS_PER_STEP);
      expect(record.computeCpuMs).toBeGreaterThan(0);
      expect(record.meanReward).toBe(0.5);
    }

    const announced = await announcements(run);
    expect(announced.map((one) => one.version)).toEqual([0, ...STEPS.map((_, i) => i + 1)]);
    expect(new Set(announced.map((one) => one.sha256)).size).toBe(N_STEPS + 1);
    expect(new Set(announced.map((one) => one.canaryNorm)).size).toBe(N_STEPS + 1);
    digests = announced.map((one) => one.sha256);

    const objects = await site.bus.objects("weights");
    const kept = await Promise.all(announced.map((one) => objects.has(one.object)));
    expect(kept).toEqual(announced.map((_, i) => i >= N_STEPS - 1));
    const [presence] = (await findServices(site.bus, "trainer")).filter((one) => one.facts.run === run);
    const client = rpcClient(TrainerService, presence!.rpcAddress, { bearer: site.bearer });
    expect(await client.getTrainerStatus({})).toMatchObject({
      run,
      version: BigInt(N_STEPS),
      state: "finished",
    });
    client.close();
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
  });

  test("started again, it finds itself finished and trains nothing", async () => {
    const trainer = site.startTrainer(run);
    while (!trainer.output().includes("trainer.finished")) await sleep(40);
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
    expect((await stepRecords(site.bus, run)).length).toBe(N_STEPS);
    expect((await announcements(run)).length).toBe(N_STEPS + 1);
  });

  test("killed between any two phases of a commit, it ends with the same weights and counts nothing twice", async () => {
    const killed = "killed";
    await site.addRun(killed, TRAINER);
    const fleet = await ScriptedFleet.create(site.bus, killed);
    const playing = fleet.play(STEPS);
    // One death after each phase, the first two while there is no version yet, then each in a commit of its own.
    const deaths = ["stored:0", "current:0", ...COMMIT_PHASES.map((phase, i) => `${phase}:${i + 1}`)];
    for (const dieAfter of deaths) {
      expect(await site.startTrainer(killed, { dieAfter }).ended).toBe("SIGKILL");
      await site.freeLease(killed);
    }
    const last = site.startTrainer(killed);
    await playing;
    await allAcknowledged(site.bus, killed);
    expect((await announcements(killed)).map((one) => one.sha256)).toEqual(digests);
    const records = await stepRecords(site.bus, killed);
    expect(records.map((record) => Number(record.step))).toEqual(STEPS.map((_, i) => i + 1));
    expect(records.at(-1)!.ledger).toMatchObject({
      sampled: ALL_TOKENS,
      trained: ALL_TOKENS,
      unconsumed: 0n,
    });
    last.child.kill("SIGTERM");
    expect(await last.ended).toBe(0);
  });
});

describe("groups that do not train", () => {
  test("stale, dropped and unreadable ones are refused, accounted for and acknowledged", async () => {
    const run = "odd";
    await site.addRun(
      run,
      TRAINER.replace(`steps = ${N_STEPS}`, "steps = 2")
        .replace("groupsPerStep = 2", "groupsPerStep = 4")
        .concat("[async]\nmaxStaleness = 0\n"),
    );
    const trainer = site.startTrainer(run);
    const fleet = await ScriptedFleet.create(site.bus, run);
    const even = (group: string): GroupScript => ({ group, rewards: [1, 1] });
    await fleet.play([
      [0, 1, 2, 3].map((i): GroupScript => ({ group: `a${i}`, rewards: [1, 0] })),
      [
        { group: "good", rewards: [1, 0] },
        { ...even("dropped"), dropReason: ExclusionReason.ZERO_VARIANCE },
        { group: "late", rewards: [1, 0], version: 0 },
        { group: "broken", rewards: [1, 0], isBroken: true },
      ],
    ]);
    await allAcknowledged(site.bus, run);
    const record = (await stepRecords(site.bus, run)).at(-1)!;
    expect(record.groups).toEqual(["good", "dropped", "broken"]);
    expect(record.staleGroups).toEqual(["late"]);
    expect(record.ledger).toMatchObject({
      sampled: 96n,
      trained: 60n,
      unconsumed: 0n,
      excluded: [
        { reason: ExclusionReason.INFRA, tokens: 12n },
        { reason: ExclusionReason.ZERO_VARIANCE, tokens: 12n },
        { reason: ExclusionReason.STALE, tokens: 12n },
      ],
    });
    expect(trainer.output()).toContain("trial.unreadable");
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
  });

  test("a batch in which nothing can be learnt is a step that leaves the weights as they are", async () => {
    const run = "empty";
    await site.addRun(run, TRAINER.replace(`steps = ${N_STEPS}`, "steps = 1"));
    const trainer = site.startTrainer(run);
    const fleet = await ScriptedFleet.create(site.bus, run);
    await fleet.play([
      [
        { group: "g0", rewards: [1, 1] },
        { group: "g1", rewards: [0, 0] },
      ],
    ]);
    await allAcknowledged(site.bus, run);
    const [first, second] = await announcements(run);
    expect(second!.sha256).toBe(first!.sha256);
    const [record] = await stepRecords(site.bus, run);
    expect(record!.ledger).toMatchObject({
      trained: 0n,
      excluded: [{ reason: ExclusionReason.ZERO_VARIANCE, tokens: 24n }],
    });
    expect(record!.consistency!.pearsonProbability).toBeUndefined();
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
  });
});

describe("without TensorFlow.js", () => {
  test("steps are committed, the independent measure is absent, and that is said once", async () => {
    const run = "alone";
    await site.addRun(run, TRAINER.replace(`steps = ${N_STEPS}`, "steps = 2"));
    const trainer = site.startTrainer(run, { withoutTfjs: true });
    const fleet = await ScriptedFleet.create(site.bus, run);
    await fleet.play(STEPS.slice(0, 2));
    await allAcknowledged(site.bus, run);
    const records = await stepRecords(site.bus, run);
    expect(records.length).toBe(2);
    for (const { consistency } of records) {
      expect(Number(consistency!.tokens)).toBe(TOKENS_PER_STEP);
      expect(consistency!.independentTokens).toBe(0n);
      expect(consistency!.independentMaxAbsDelta).toBeUndefined();
    }
    expect(trainer.output().match(/consistency\.independent-absent/g)).toHaveLength(1);
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
  });
});

describe("one trainer a run", () => {
  test("a standby waits for the lease and goes on where a killed trainer stopped", async () => {
    const run = "standby";
    await site.addRun(run, TRAINER);
    const first = site.startTrainer(run);
    const fleet = await ScriptedFleet.create(site.bus, run);
    await fleet.reached(0);
    const second = site.startTrainer(run);
    while (!second.output().includes("service.ready")) await sleep(40);
    const playing = fleet.play(STEPS);
    await fleet.reached(1);
    expect(second.output()).not.toContain("trainer.at");
    first.child.kill("SIGKILL");
    await playing;
    await allAcknowledged(site.bus, run);
    expect((await stepRecords(site.bus, run)).length).toBe(N_STEPS);
    second.child.kill("SIGTERM");
    expect(await second.ended).toBe(0);
  });
});

describe("warm start", () => {
  test("demonstrations become likely, and version 0 is published with fresh moments", async () => {
    const run = "warm";
    const path = join(site.directory, "demonstrations.jsonl");
    const lines = ["fix", "sum", "ok"].map((content) =>
      JSON.stringify({
        messages: [
          { role: "user", content },
          { role: "assistant", content: "done" },
        ],
      }),
    );
    await writeFile(path, lines.join("\n"));
    await site.addRun(
      run,
      `[trainer]\nsteps = 0\n[warmStart]\ndemonstrations = ${JSON.stringify(path)}\nsteps = 30\nbatchSize = 3\n[warmStart.optimiser]\nlearningRate = 1e-2\nwarmupUpdates = 3\nbeta1 = 0.9\nbeta2 = 0.95\nweightDecay = 0\n`,
    );
    const trainer = site.startTrainer(run);
    const fleet = await ScriptedFleet.create(site.bus, run);
    await fleet.reached(0);
    const checkpoint = await openCheckpoint(join(site.directory, "state", "trainer", run, "0"));
    const initial = await openCheckpoint(site.policy);
    const rows = demonstrationRows(lines.join("\n"), path, checkpoint, {
      promptWeight: 1,
      maxTokens: 128,
    }).flat();
    const model = await createPolicyModel(checkpoint.config, { backend: "embedded" });
    const likelihood = (weights: Uint8Array) => {
      model.loadWeights(weights);
      return model
        .logProbabilities(rows)
        .reduce((sum, row) => sum + row.subarray(1).reduce((a, b) => a + b, 0), 0);
    };
    expect(likelihood(checkpoint.weights)).toBeGreaterThan(likelihood(initial.weights) / 2);
    expect(await readdir(join(site.directory, "state", "trainer", run, "0"))).toContain(
      "tokenizer_config.json",
    );
    trainer.child.kill("SIGTERM");
    expect(await trainer.ended).toBe(0);
  });
});

describe("bad input", () => {
  test.each([
    ["averaging", TRAINER.replace('"grpo"', '"gspo"'), 2, "MORTISE_CONFIG_INVALID", "trainer.aggregation"],
    [
      "demonstrations",
      `${TRAINER}[warmStart]\ndemonstrations = "/nowhere.jsonl"\n`,
      1,
      "MORTISE_TRAINER_DEMONSTRATIONS",
      "/nowhere.jsonl",
    ],
  ])("%s: refused with a code and the field", async (name, toml, exit, code, field) => {
    const run = `bad-${name}`;
    await site.addRun(run, toml);
    const trainer = site.startTrainer(run);
    expect(await trainer.ended).toBe(exit);
    expect(trainer.output()).toContain(code);
    expect(trainer.output()).toContain(field);
  });

  test("a checkpoint that is not there", async () => {
    await site.addRun("bad-policy", TRAINER);
    const trainer = site.startTrainer("bad-policy", { args: ["--set", 'policy.checkpoint="/nowhere"'] });
    expect(await trainer.ended).not.toBe(0);
    expect(trainer.output()).toContain("MORTISE_POLICY_CHECKPOINT");
    expect(trainer.output()).toContain("/nowhere/config.json");
  });
});
