/** One optimiser step on a real policy: what it computes, against independent recomputation. */
import { objectiveOf } from "@mortise/objectives";
import { createPolicyModel, initialiseWeights, type PolicyModel } from "@mortise/policy";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { StepTask } from "../src/compute/messages.js";
import { policyStep } from "../src/compute/policy-step.js";
import { rescore } from "../src/compute/rescore.js";
import { optimiser, sampledTask } from "./support/sampled-task.js";
import { tinyConfig } from "./support/tiny-policy.js";

const config = tinyConfig(40);
const weights = initialiseWeights(config, 3);
let model: PolicyModel;
let scorer: PolicyModel;

beforeAll(async () => {
  model = await createPolicyModel(config, { backend: "embedded" });
  scorer = await createPolicyModel(config, { backend: "embedded" });
});
afterAll(() => {
  model.dispose();
  scorer.dispose();
});
beforeEach(() => {
  model.loadWeights(weights);
  model.resetOptimizer();
});

/** No version but the one the step starts from. */
const scorers = { training: () => scorer, independent: undefined, weightsOf: () => undefined };
const task = (overrides: Partial<StepTask> = {}) => sampledTask(scorer, weights, overrides);

describe("policy step", () => {
  test("the loss of an on-policy step is minus the mean advantage, without any clipping", () => {
    const given = task();
    const { totals, start } = policyStep(model, given, undefined);
    expect(totals.loss).toBeCloseTo(-(1 - 0.5 - 0.8) / 3, 6);
    expect(totals.updates).toBe(1);
    expect(totals.clipped).toBe(0);
    expect(start.map((row) => row.length)).toEqual([6, 4, 5, 5]);
  });

  test("a step raises the probability of what was better and lowers that of what was worse", () => {
    const given = task({ epochs: 4, optimiser: { ...optimiser, learningRate: 5e-3 } });
    policyStep(model, given, undefined);
    const after = model.logProbabilities(given.rows);
    const change = (i: number) =>
      given.rows[i]!.mask.reduce(
        (sum, bit, t) => sum + (bit ? after[i]![t]! - given.rows[i]!.behaviour[t]! : 0),
        0,
      );
    expect(change(0)).toBeGreaterThan(0);
    expect(change(1) + change(2)).toBeLessThan(0);
    expect(change(3)).toBeLessThan(0);
  });

  test("repeating a step from the same start gives the same bytes", () => {
    const run = () => {
      model.loadWeights(weights);
      model.resetOptimizer();
      policyStep(model, task({ epochs: 2, miniBatches: 2 }), undefined);
      return Buffer.from(model.exportWeights()).toString("base64");
    };
    expect(run()).toBe(run());
  });

  test.each(["gspo", "drgrpo", "dapo", "cispo", "rloo", "ppo"] as const)(
    "%s takes a finite step",
    (algorithm) => {
      const before = Buffer.from(model.exportWeights());
      const { totals } = policyStep(
        model,
        task({ objective: objectiveOf(algorithm, 100), epochs: 2 }),
        undefined,
      );
      expect(totals.updates).toBe(2);
      expect(Number.isFinite(totals.loss)).toBe(true);
      expect(before.equals(Buffer.from(model.exportWeights()))).toBe(false);
    },
  );

  test("mini-batches never split a trial and each gives one update", () => {
    const { totals } = policyStep(model, task({ miniBatches: 3, epochs: 2 }), undefined);
    expect(totals.updates).toBe(6);
    expect(totals.trained).toBe(2 * (4 + 5 + 3));
  });

  test("in proximal mode a wrong recording is corrected by a capped weight; in behaviour mode it is the ratio", () => {
    const given = task();
    const shifted = given.rows.map((row) => ({ ...row, behaviour: row.behaviour.map((lp) => lp - 1) }));
    const importance = { kind: "truncate", level: "token", cap: 2 } as const;
    const objective = { ...given.objective, importance, aggregation: "token-mean" as const };
    const proximal = policyStep(
      model,
      { ...given, rows: shifted, ratio: "proximal", objective },
      undefined,
    ).totals;
    // Ratio 1 everywhere, weight min(e, 2) = 2: twice the on-policy loss.
    expect(proximal.loss).toBeCloseTo((-2 * (1 * 4 - 0.5 * 5 - 0.8 * 3)) / 12, 5);
    model.loadWeights(weights);
    const behaviour = policyStep(model, { ...given, rows: shifted }, undefined).totals;
    expect(behaviour.clipped).toBe(4);
  });

  test("a token without a recording stands in for itself and is counted missing (C10)", () => {
    const given = task();
    given.rows[0]!.behaviour[3] = Number.NaN;
    const { totals, start } = policyStep(model, given, undefined);
    expect(totals.loss).toBeCloseTo(0.1, 6);
    expect(rescore(given, start, scorers).drift).toMatchObject({ nTokens: 11, nMissing: 1 });
  });

  test("a KL term pulls towards the reference", () => {
    const given = task({ trials: task().trials.map((one) => ({ ...one, advantage: 0 })) });
    scorer.loadWeights(initialiseWeights(config, 9));
    const reference = scorer.logProbabilities(given.rows);
    const objective = { ...given.objective, kl: { estimator: "k3" as const, coefficient: 1 } };
    const kl = () => {
      const now = model.logProbabilities(given.rows);
      return given.rows.reduce(
        (sum, row, i) =>
          sum + row.mask.reduce((s, bit, t) => s + (bit ? Math.abs(now[i]![t]! - reference[i]![t]!) : 0), 0),
        0,
      );
    };
    const before = kl();
    policyStep(model, { ...given, objective, epochs: 5 }, reference);
    expect(kl()).toBeLessThan(before);
  });

  test("no rows: no update, and nothing is measured", () => {
    const given = task({ rows: [], trials: [] });
    const before = Buffer.from(model.exportWeights());
    const { totals, start } = policyStep(model, given, undefined);
    expect(totals.updates).toBe(0);
    expect(before.equals(Buffer.from(model.exportWeights()))).toBe(true);
    expect(rescore(given, start, scorers).consistency).toMatchObject({
      nTokens: 0,
      pearsonProbability: null,
    });
  });

  test("a gradient that is not finite ends the step and leaves the weights", () => {
    const before = Buffer.from(model.exportWeights());
    const trials = task().trials.map((one) => ({ ...one, advantage: Number.POSITIVE_INFINITY }));
    expect(() => policyStep(model, task({ trials }), undefined)).toThrow(
      expect.objectContaining({ code: "MORTISE_TRAINER_NON_FINITE" }),
    );
    expect(before.equals(Buffer.from(model.exportWeights()))).toBe(true);
  });
});
