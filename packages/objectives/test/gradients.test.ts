/**
 * Gradients of whole objectives against central finite differences, over random batches, including trials cut
 * into several sequences and micro-batches of any size.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  evaluateRow,
  importanceWeights,
  logSequenceRatio,
  type Objective,
  objectiveOf,
  stepDenominators,
  sum,
  tokenWeight,
} from "../src/index.js";

interface Row {
  readonly current: number[];
  readonly proximal: number[];
  readonly behaviour: number[];
  readonly reference: number[];
  readonly entropy: number[];
  readonly mask: number[];
}
interface Trial {
  readonly advantage: number;
  readonly rows: readonly Row[];
}

const logp = fc.double({ min: -4, max: -0.01, noNaN: true });
const token = fc.record({
  current: logp,
  proximal: logp,
  behaviour: logp,
  reference: logp,
  entropy: fc.double({ min: 0, max: 2, noNaN: true }),
  mask: fc.constantFrom(0, 1, 1),
});
const row = fc.array(token, { minLength: 1, maxLength: 5 }).map((tokens): Row => {
  const column = (field: keyof (typeof tokens)[number]) => tokens.map((one) => one[field]);
  return {
    current: column("current"),
    proximal: column("proximal"),
    behaviour: column("behaviour"),
    reference: column("reference"),
    entropy: column("entropy"),
    mask: column("mask"),
  };
});
const trial: fc.Arbitrary<Trial> = fc.record({
  advantage: fc.double({ min: -2, max: 2, noNaN: true }),
  rows: fc.array(row, { minLength: 1, maxLength: 3 }),
});
const batchOf = fc.array(trial, { minLength: 1, maxLength: 4 });

const tokensOf = (one: Trial) => one.rows.reduce((total, each) => total + sum(each.mask), 0);

/** Loss and gradients of a batch; `frozen` supplies what the objective treats as constant. */
function evaluate(objective: Objective, trials: readonly Trial[]) {
  const denominators = stepDenominators(trials.map(tokensOf));
  let loss = 0;
  const gradients = trials.map((one) => {
    const weight = tokenWeight(objective.aggregation, denominators, tokensOf(one), objective.horizon);
    const weights = importanceWeights(one.rows, objective.importance);
    return one.rows.map((each, i) => {
      const outcome = evaluateRow(
        objective,
        { ...each, importance: weights.rows[i]! },
        { advantage: one.advantage, weight, logSequenceRatio: logSequenceRatio(one.rows) },
      );
      loss += outcome.loss;
      return outcome.gradient;
    });
  });
  return { loss, gradients };
}

const STEP = 1e-6;

function nudged(trials: readonly Trial[], at: readonly [number, number, number], by: number): Trial[] {
  const [i, j, t] = at;
  return trials.map((one, a) => ({
    ...one,
    rows: one.rows.map((each, b) =>
      a === i && b === j ? { ...each, current: each.current.map((lp, c) => (c === t ? lp + by : lp)) } : each,
    ),
  }));
}

function expectGradients(objective: Objective, trials: readonly Trial[]) {
  const { gradients } = evaluate(objective, trials);
  for (const [i, one] of trials.entries()) {
    for (const [j, each] of one.rows.entries()) {
      for (const t of each.current.keys()) {
        const up = evaluate(objective, nudged(trials, [i, j, t], STEP)).loss;
        const down = evaluate(objective, nudged(trials, [i, j, t], -STEP)).loss;
        const numeric = (up - down) / (2 * STEP);
        expect(Math.abs(numeric - gradients[i]![j]![t]!)).toBeLessThan(1e-4 * (1 + Math.abs(numeric)));
      }
    }
  }
}

/** CISPO and REINFORCE weights are stop-gradient; the rest differentiate through everything they compute. */
const differentiable: [string, Objective][] = [
  ["ppo with dual clip", objectiveOf("ppo", 4)],
  ["grpo", objectiveOf("grpo", 4)],
  ["drgrpo", objectiveOf("drgrpo", 4)],
  ["dapo", objectiveOf("dapo", 4)],
  ["rloo", objectiveOf("rloo", 4)],
  ["rft", objectiveOf("rft", 4)],
  [
    "gspo over all sequences of a trial",
    { ...objectiveOf("gspo", 4), policyLoss: { kind: "gspo", bounds: { low: 0.2, high: 0.3 } } },
  ],
  ["grpo + k1", { ...objectiveOf("grpo", 4), kl: { estimator: "k1", coefficient: 0.1 } }],
  ["grpo + k2", { ...objectiveOf("grpo", 4), kl: { estimator: "k2", coefficient: 0.1 } }],
  [
    "grpo + k3 + entropy",
    { ...objectiveOf("grpo", 4), kl: { estimator: "k3", coefficient: 0.1 }, entropyCoefficient: 0.01 },
  ],
  ["dapo + TIS", { ...objectiveOf("dapo", 4), importance: { kind: "truncate", level: "token", cap: 2 } }],
  [
    "dapo + IcePop per trial",
    { ...objectiveOf("dapo", 4), importance: { kind: "mask", level: "geometric", low: 0.5, high: 5 } },
  ],
];

describe("gradients match finite differences", () => {
  test.each(differentiable)("%s", (_name, objective) => {
    fc.assert(
      fc.property(batchOf, (trials) => expectGradients(objective, trials)),
      { numRuns: 25, seed: 7 },
    );
  });

  test("cispo: derivative of its loss with the clipped weight held constant", () => {
    const outcome = evaluateRow(
      objectiveOf("cispo", 4),
      { current: [-0.2, -3], proximal: [-1.4, -1.5], mask: [1, 1] },
      { advantage: 0.7, weight: 0.5 },
    );
    expect(outcome.gradient[0]).toBeCloseTo(-0.5 * 1.28 * 0.7, 12);
    expect(outcome.gradient[1]).toBeCloseTo(-0.5 * Math.exp(-1.5) * 0.7, 12);
    expect(outcome.nClipped).toBe(1);
  });

  test("entropy: its gradient is −c times the averaging weight", () => {
    const outcome = evaluateRow(
      { ...objectiveOf("rloo", 4), entropyCoefficient: 0.01 },
      { current: [-1], proximal: [-1], mask: [1], entropy: [0.4] },
      { advantage: 0, weight: 0.25 },
    );
    expect(outcome.entropyGradient).toBeCloseTo(-0.0025, 15);
    expect(outcome.loss).toBeCloseTo(-0.001, 15);
  });
});

describe("one trial is one unit", () => {
  test("cutting a trial into more sequences changes neither loss nor gradients", () => {
    for (const [, objective] of differentiable) {
      fc.assert(
        fc.property(batchOf, (trials) => {
          const cut = trials.map((one) => ({ ...one, rows: one.rows.flatMap(singleTokens) }));
          const whole = evaluate(objective, trials);
          const pieces = evaluate(objective, cut);
          expect(pieces.loss).toBeCloseTo(whole.loss, 9);
          const flat = (result: typeof whole) =>
            result.gradients.flatMap((rows) => rows.flatMap((g) => Array.from(g)));
          const expected = flat(whole);
          for (const [i, value] of flat(pieces).entries()) expect(value).toBeCloseTo(expected[i]!, 9);
        }),
        { numRuns: 10, seed: 11 },
      );
    }
  });

  function singleTokens(each: Row): Row[] {
    return each.current.map((_, t) => ({
      current: [each.current[t]!],
      proximal: [each.proximal[t]!],
      behaviour: [each.behaviour[t]!],
      reference: [each.reference[t]!],
      entropy: [each.entropy[t]!],
      mask: [each.mask[t]!],
    }));
  }
});
