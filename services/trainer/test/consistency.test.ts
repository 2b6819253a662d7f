/** Recorded against recomputed log-probabilities, by the training kernels and by an independent implementation. */
import {
  createIndependentModel,
  createPolicyModel,
  initialiseWeights,
  type PolicyModel,
} from "@mortise/policy";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { IndependentCheck, independentRows } from "../src/compute/independent-check.js";
import type { StepTask } from "../src/compute/messages.js";
import { type Rescored, rescore } from "../src/compute/rescore.js";
import { sampledTask } from "./support/sampled-task.js";
import { tinyConfig } from "./support/tiny-policy.js";

const config = tinyConfig(40);
const weights = initialiseWeights(config, 3);
const newer = initialiseWeights(config, 4);
let model: PolicyModel;
let independent: PolicyModel;

beforeAll(async () => {
  model = await createPolicyModel(config, { backend: "embedded" });
  independent = await createIndependentModel(model);
});
afterAll(() => {
  model.dispose();
  independent.dispose();
});

const task = (overrides: Partial<StepTask> = {}) => sampledTask(model, weights, overrides);

/** What a step from `version` measures; version 0 sampled, version 1 has other weights. */
function measured(
  given: StepTask,
  options: { rows?: readonly number[]; kept?: readonly number[]; start?: readonly Float32Array[] } = {},
): Rescored {
  const { rows, kept = [0, 1] } = options;
  model.loadWeights(given.version === 0 ? weights : newer);
  const start = options.start ?? model.logProbabilities(given.rows);
  return rescore(given, start, {
    training: () => model,
    independent: rows && { model: independent, rows },
    weightsOf: (version) => (kept.includes(version) ? [weights, newer][version] : undefined),
  });
}

/** Every recorded log-probability moved by `delta` nats. */
function shifted(given: StepTask, delta: number): StepTask {
  return {
    ...given,
    rows: given.rows.map((row) => ({ ...row, behaviour: row.behaviour.map((lp) => lp + delta) })),
  };
}

describe("the training kernels", () => {
  test("reproduce what they sampled bit for bit, under the version that sampled; drift is apart", () => {
    const { consistency, drift } = measured(task({ version: 1 }));
    expect(consistency).toMatchObject({ nTokens: 12, nMissing: 0, maxAbsDeltaLogp: 0 });
    expect(drift.maxAbsDeltaLogp).toBeGreaterThan(1e-3);
  });

  test("tokens of a version whose weights are gone are missing, never compared with others", () => {
    const { consistency, independent: again } = measured(task({ version: 1 }), { kept: [1], rows: [0, 3] });
    expect(consistency).toMatchObject({ nTokens: 0, nMissing: 12, maxAbsDeltaLogp: null });
    expect(again).toMatchObject({ nTokens: 0, maxAbsDeltaLogp: null });
  });
});

describe("an independent implementation", () => {
  test.each([0, 1])("agrees to rounding and not exactly, in a step from version %i", (version) => {
    const { consistency, independent: again } = measured(task({ version }), { rows: [0, 1, 2, 3] });
    expect(independent.backend).toBe("tfjs (cpu)");
    expect(again.maxAbsDeltaLogp).toBeGreaterThan(0);
    expect(again.maxAbsDeltaLogp).toBeLessThanOrEqual(1e-4);
    expect(consistency.maxAbsDeltaLogp).toBe(again.maxAbsDeltaLogp);
    // Half of the comparisons are exact.
    expect(consistency.meanAbsDeltaLogp).toBeCloseTo(again.meanAbsDeltaLogp! / 2, 12);
    expect(consistency).toMatchObject({ nTokens: 12, nMissing: 0 });
    expect(again.nTokens).toBe(12);
  });

  test("sees a wrong recording that it scores", () => {
    const given = task();
    given.rows[3]!.behaviour[4]! += 0.01;
    const { independent: again } = measured(given, { rows: [3] });
    expect(again.nTokens).toBe(3);
    expect(again.maxAbsDeltaLogp).toBeCloseTo(0.01, 4);
  });

  test("sees an error that sampling and training have in common", () => {
    const given = shifted(task(), 0.01);
    const start = given.rows.map((row) => row.behaviour);
    expect(measured(given, { start }).consistency.maxAbsDeltaLogp).toBe(0);
    const { consistency } = measured(given, { start, rows: [0] });
    expect(consistency.maxAbsDeltaLogp).toBeCloseTo(0.01, 4);
  });

  test("a token without a recording is missing once", () => {
    const given = task();
    given.rows[0]!.behaviour[3] = Number.NaN;
    const { consistency, independent: again } = measured(given, { rows: [0] });
    expect(consistency).toMatchObject({ nTokens: 11, nMissing: 1 });
    expect(again.nTokens).toBe(3);
  });

  test("beside a model in TensorFlow.js it is the embedded engine", async () => {
    expect((await createIndependentModel(independent)).backend).toContain("embedded");
  });
});

describe("the sample", () => {
  const trialsOf = (given: StepTask, rows: readonly number[]) =>
    new Set(rows.map((i) => given.rows[i]!.trial));

  test("is of whole trials, as many as configured, the same for the same seed", () => {
    const given = task({ independentTrials: 2 });
    const rows = independentRows(given, 1_000);
    const trials = trialsOf(given, rows);
    expect(trials.size).toBe(2);
    expect(rows).toEqual([...given.rows.keys()].filter((i) => trials.has(given.rows[i]!.trial)));
    expect(independentRows(given, 1_000)).toEqual(rows);
    const drawn = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => independentRows({ ...given, seed }, 1_000).join());
    expect(new Set(drawn).size).toBeGreaterThan(1);
  });

  test("passes over trials that cost too much", () => {
    const given = task({ independentTrials: 3 });
    // 6e7 / 1e7 = 6 tokens: trial 1 has 9, trials 0 and 2 have 6 and 5.
    expect([[0], [3]]).toContainEqual(independentRows(given, 1e7));
  });

  test("off, there is none and nothing is told; too costly, that is told once", async () => {
    const told: string[] = [];
    const off = new IndependentCheck(model, (reason) => told.push(reason));
    expect(await off.of(task({ independentTrials: 0 }))).toBeUndefined();
    expect(told).toEqual([]);
    const row = { ...task().rows[0]!, ids: new Int32Array(100_000) };
    const huge = task({ rows: [row], independentTrials: 1 });
    expect(await off.of(huge)).toBeUndefined();
    expect(await off.of(huge)).toBeUndefined();
    expect(told).toHaveLength(1);
  });
});
