/**
 * Rules that no acceptance number covers: what is refused, what is missing, and what must be reproducible.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ALGORITHMS,
  alarms,
  bestAtK,
  bootstrapRise,
  clipGlobalNorm,
  clusteredRise,
  consistency,
  evaluateRow,
  groupAdvantages,
  histogram,
  importanceWeights,
  objectiveOf,
  objectiveProblem,
  passAtK,
  staleness,
  stepDenominators,
  tokenWeight,
  trend,
  warmupCosine,
  wilsonInterval,
} from "../src/index.js";

const valid = (reward: number) => ({ reward, isValid: true });

describe("advantages", () => {
  test("sum to zero over valid members, and invalid members never move the others", () => {
    const rewards = fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: 2, maxLength: 9 });
    fc.assert(
      fc.property(rewards, fc.double({ noNaN: true }), (values, junk) => {
        const plain = groupAdvantages(values.map(valid), { estimator: "grpo" });
        const joined = groupAdvantages([...values.map(valid), { reward: junk, isValid: false }], {
          estimator: "grpo",
        });
        expect(joined.advantages).toEqual([...plain.advantages, 0]);
        expect(plain.advantages.reduce((a, b) => a + b, 0)).toBeCloseTo(0, 8);
      }),
    );
  });

  test("no valid member: dropped, mean and deviation undefined", () => {
    const result = groupAdvantages([{ reward: 1, isValid: false }], { estimator: "grpo" });
    expect(result).toEqual({ advantages: [0], dropped: "too-few-valid", nValid: 0, mean: null, std: null });
  });

  test("a reward that is not a number is refused, not averaged", () => {
    expect(() => groupAdvantages([valid(Number.NaN), valid(1)], { estimator: "rloo" })).toThrow(RangeError);
  });
});

describe("aggregation", () => {
  test("a fully masked trial does not dilute the others", () => {
    const denominators = stepDenominators([4, 0, 2]);
    expect(denominators).toEqual({ nTokens: 6, nTrials: 2 });
    expect(tokenWeight("seq-mean-token-mean", denominators, 0)).toBe(0);
    expect(tokenWeight("seq-mean-token-mean", denominators, 2)).toBe(0.25);
  });

  test("the constant-horizon mode refuses to guess its horizon", () => {
    expect(() => tokenWeight("seq-mean-token-sum-norm", stepDenominators([1]), 1)).toThrow(/horizon/);
  });
});

describe("objective", () => {
  const row = { current: [-1], proximal: [-1], mask: [1] };
  test("asks for what its terms need", () => {
    const context = { advantage: 1, weight: 1 };
    expect(() => evaluateRow(objectiveOf("gspo", 1), row, context)).toThrow(/whole trial/);
    const withKl = { ...objectiveOf("grpo", 1), kl: { estimator: "k3" as const, coefficient: 1 } };
    expect(() => evaluateRow(withKl, row, context)).toThrow(/reference/);
    const withEntropy = { ...objectiveOf("grpo", 1), entropyCoefficient: 0.1 };
    expect(() => evaluateRow(withEntropy, row, context)).toThrow(/entropies/);
  });

  test("every preset is meaningful; GSPO averaged over tokens is not, nor a norm without horizon", () => {
    for (const algorithm of ALGORITHMS) expect(objectiveProblem(objectiveOf(algorithm, 8))).toBeNull();
    expect(objectiveProblem({ ...objectiveOf("gspo", 8), aggregation: "token-mean" })).toMatch(
      /seq-mean-token-mean/,
    );
    expect(objectiveProblem(objectiveOf("drgrpo", 0))).toMatch(/horizon/);
  });

  test.each(ALGORITHMS)("%s on an on-policy batch pushes along the advantage", (algorithm) => {
    for (const advantage of [1, -1]) {
      const outcome = evaluateRow(objectiveOf(algorithm, 8), row, {
        advantage,
        weight: 1,
        logSequenceRatio: 0,
      });
      expect(Math.sign(outcome.gradient[0]!)).toBe(-advantage);
      expect(outcome.nClipped).toBe(0);
    }
  });
});

describe("missing is missing (C10)", () => {
  test("a token without a recorded log-probability gets no importance and is counted", () => {
    const trial = [{ proximal: [-1, -1], behaviour: [Number.NaN, -1], mask: [1, 1] }];
    const weights = importanceWeights(trial, { kind: "truncate", level: "product", cap: 2 });
    expect(Array.from(weights.rows[0]!)).toEqual([0, 1]);
    expect(weights.nMissing).toBe(1);
  });

  test("consistency counts missing tokens and measures the rest", () => {
    const measured = consistency([-1, Number.NaN, -2], [-1.5, -1, -2]);
    expect(measured).toMatchObject({ nTokens: 2, nMissing: 1, maxAbsDeltaLogp: 0.5 });
  });

  test("nothing measured is null everywhere", () => {
    const { nTokens, nMissing, ...measures } = consistency([], []);
    expect([nTokens, nMissing]).toEqual([0, 0]);
    expect(new Set(Object.values(measures))).toEqual(new Set([null]));
  });

  test("unmeasured signals raise no alarm", () => {
    expect(alarms({ pearsonProbability: null, kl1: null, essFraction: null })).toEqual([]);
  });

  test("estimates beyond the data are null", () => {
    expect([passAtK(4, 1, 5), bestAtK([], 1), wilsonInterval(0, 0), clusteredRise([])]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
});

describe("alarms", () => {
  test("each threshold", () => {
    const names = alarms({
      pearsonProbability: 0.97,
      kl1: -0.2,
      essFraction: 0.1,
      meanTurns: [1.2],
      groups: [{ nSolved: 8, nValid: 8 }],
      infraShare: 0.06,
    }).map((alarm) => alarm.name);
    expect(names).toEqual([
      "consistency-correlation",
      "kl",
      "ess",
      "turns-collapsed",
      "no-partial-groups",
      "infra-failures",
    ]);
  });

  test("turns that fall over the window are noticed, noise is not", () => {
    const falling = [9, 8.8, 8.1, 7.7, 7.2, 6.4, 6.1, 5.2, 4.9, 4.1];
    const noise = [5, 5.2, 4.8, 5.1, 4.9, 5.0, 5.2, 4.9, 5.1, 5.0];
    expect(alarms({ meanTurns: falling }).map((alarm) => alarm.name)).toEqual(["turns-falling"]);
    expect(alarms({ meanTurns: noise })).toEqual([]);
  });

  test("a perfect line has an infinite t; a constant has none", () => {
    expect(trend([1, 2, 3])).toEqual({ slope: 1, t: Number.POSITIVE_INFINITY });
    expect(trend([2, 2, 2])).toBeNull();
  });
});

describe("staleness", () => {
  test("the worked example: step 10, oldest token from version 8", () => {
    expect(staleness({ step: 10, lowestVersion: 8, endVersion: 9 })).toEqual({
      total: 1,
      inFlight: 1,
      inQueue: 0,
    });
    expect(staleness({ step: 10, lowestVersion: 9 })).toEqual({ total: 0, inFlight: null, inQueue: null });
  });

  test("a version from the future is refused", () => {
    expect(() => staleness({ step: 3, lowestVersion: 3 })).toThrow(RangeError);
  });
});

describe("optimiser", () => {
  test("a gradient that is not finite skips the step", () => {
    expect(clipGlobalNorm([[1, Number.POSITIVE_INFINITY]], 1).scale).toBeNull();
  });

  test("cosine starts at the peak after warm-up and ends at its fraction", () => {
    const options = { peak: 2, warmup: 10, total: 100, finalFraction: 0.1 };
    expect(warmupCosine(10, options)).toBeCloseTo(2, 12);
    expect(warmupCosine(100, options)).toBeCloseTo(0.2, 12);
    expect(warmupCosine(55, options)).toBeCloseTo(1.1, 12);
  });
});

describe("the rise of a solve rate", () => {
  const task = (before: number[], after: number[]) => ({ before, after });
  const tasks = [task([0, 0], [1, 1]), task([1, 0], [1, 0]), task([0, 0], [1, 0]), task([1, 1], [1, 1])];

  test("is the mean over tasks, not over attempts", () => {
    const uneven = [task([0, 0, 0, 0], [0, 0, 0, 0]), task([0], [1])];
    expect(clusteredRise(uneven)?.rise).toBe(0.5);
    expect(bootstrapRise(uneven, { seed: 1, resamples: 10 })?.rise).toBe(0.5);
  });

  test("clustered interval by hand: differences 1, 0, .5, 0", () => {
    const found = clusteredRise(tasks)!;
    expect(found.rise).toBe(0.375);
    const half = (1.959963984540054 * Math.sqrt(0.6875 / 3)) / 2;
    expect(found.interval[0]).toBeCloseTo(0.375 - half, 12);
    expect(found.interval[1]).toBeCloseTo(0.375 + half, 12);
  });

  test("the bootstrap repeats exactly for a seed, and agrees with the clustered interval on many tasks", () => {
    const many = Array.from({ length: 200 }, (_, i) => tasks[i % tasks.length]!);
    const options = { seed: 5, resamples: 2_000 };
    const found = bootstrapRise(many, options)!;
    expect(bootstrapRise(many, options)).toEqual(found);
    expect(bootstrapRise(many, { ...options, seed: 6 })).not.toEqual(found);
    const clustered = clusteredRise(many)!;
    for (const side of [0, 1] as const)
      expect(found.interval[side]).toBeCloseTo(clustered.interval[side], 1.5);
    const wider = bootstrapRise(many, { ...options, resampleAttempts: true })!;
    expect(wider.interval[0]).toBeLessThan(wider.interval[1]);
  });

  test("a task without attempts is refused", () => {
    expect(() => clusteredRise([task([], [1]), task([1], [1])])).toThrow(RangeError);
  });
});

test("histogram puts every value in exactly one place, absent values nowhere", () => {
  const result = histogram([-2, -1, 0, 0.49, 0.5, 1, Number.NaN], -1, 1, 4);
  expect(result).toEqual({ low: -1, high: 1, counts: [1, 0, 2, 1], underflow: 1, overflow: 1 });
});
