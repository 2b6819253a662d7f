/** Checks of the policy-loss, averaging, KL and importance entries. */
import { expect } from "vitest";
import {
  type Aggregation,
  type ClipBounds,
  cispo,
  effectiveSampleFraction,
  evaluateRow,
  gspo,
  importanceWeights,
  klTerm,
  logRatio,
  logSequenceRatio,
  type Objective,
  objectiveOf,
  ppoClip,
  type RowOutcome,
  stepDenominators,
  sum,
  tokenWeight,
  trialWeight,
  weightOf,
} from "../../src/index.js";
import { batch, type Check, expectClose, type Vector } from "./vector.js";

const trained = (mask: number[]) => sum(mask);
const rowOf = (row: (typeof batch)[number]) => ({ current: row.new, proximal: row.old, mask: row.mask });

/** The shared batch, each row a trial of its own, through the whole objective. */
function evaluateBatch(objective: Objective): RowOutcome[] {
  const denominators = stepDenominators(batch.map((row) => trained(row.mask)));
  return batch.map((row) =>
    evaluateRow(objective, rowOf(row), {
      advantage: row.adv,
      weight: tokenWeight(objective.aggregation, denominators, trained(row.mask), objective.horizon),
      logSequenceRatio: logSequenceRatio([rowOf(row)]),
    }),
  );
}

const totalLoss = (outcomes: readonly RowOutcome[]) =>
  outcomes.reduce((total, outcome) => total + outcome.loss, 0);

const gspoCheck: Check = (vector) => {
  const bounds = { low: vector.inputs.clip_low, high: vector.inputs.clip_high };
  const outcomes = evaluateBatch({ ...objectiveOf("gspo", 4), policyLoss: { kind: "gspo", bounds } });
  expectClose(totalLoss(outcomes), vector.expected.loss, vector.abs_tol);
  expectClose(
    outcomes.map((outcome) => Array.from(outcome.gradient)),
    vector.expected.grad_wrt_new_logp,
    vector.abs_tol,
  );
  const perSequence = batch.map((row) => gspo(1, logSequenceRatio([rowOf(row)]), row.adv, bounds));
  expectClose(
    perSequence.map((terms) => terms.loss[0]),
    vector.expected.per_sequence_loss,
    vector.abs_tol,
  );
  expect(perSequence.map((terms) => terms.clipped[0])).toEqual(vector.expected.clipped);
  const nClipped = outcomes.reduce((total, outcome) => total + outcome.nClipped, 0);
  const nTrained = outcomes.reduce((total, outcome) => total + outcome.nTrained, 0);
  expectClose(nClipped / nTrained, vector.expected.clipfrac_token_weighted, vector.abs_tol);
};

const AGGREGATIONS: readonly Aggregation[] = [
  "token-mean",
  "seq-mean-token-mean",
  "seq-mean-token-sum",
  "seq-mean-token-sum-norm",
];

const ppoCheck: Check = (vector) => {
  const { clip_low: low, clip_high: high, dual_clip_c: dual, horizon } = vector.inputs;
  const bounds: ClipBounds = dual === null ? { low, high } : { low, high, dual };
  const unmasked = batch.map((row) => Array.from(ppoClip(row.new, row.old, row.adv, bounds).loss));
  expectClose(unmasked, vector.expected.per_token_loss_unmasked, vector.abs_tol);
  for (const aggregation of AGGREGATIONS) {
    const objective = { ...objectiveOf("ppo", horizon), policyLoss: { kind: "ppo-clip", bounds } as const };
    const outcomes = evaluateBatch({ ...objective, aggregation, horizon });
    expectClose(totalLoss(outcomes), vector.expected[aggregation], vector.abs_tol);
    if (aggregation !== "token-mean") continue;
    const gradients = outcomes.map((outcome) => Array.from(outcome.gradient));
    expectClose(gradients, vector.expected.grad_token_mean_wrt_new_logp, vector.abs_tol);
  }
};

function importanceCheck({ inputs, expected, abs_tol }: Vector): void {
  const mask = inputs.train_logp.map(() => 1);
  const trial = [{ proximal: inputs.train_logp, behaviour: inputs.rollout_logp, mask }];
  const raw = inputs.train_logp.map((lp: number, i: number) => weightOf(lp - inputs.rollout_logp[i]));
  const tis = importanceWeights(trial, { kind: "truncate", level: "token", cap: inputs.C }).rows[0]!;
  const [low, high] = inputs.icepop;
  const icepop = importanceWeights(trial, { kind: "mask", level: "token", low, high }).rows[0]!;
  const product = importanceWeights(trial, { kind: "truncate", level: "product", cap: inputs.C }).rows[0]!;
  expectClose(raw, expected.w, abs_tol);
  expectClose(tis, expected.tis_token, abs_tol);
  expectClose(icepop, expected.icepop_token, abs_tol);
  expectClose(trialWeight(trial, "product"), expected.seq_product, abs_tol);
  expectClose(product[0], expected.seq_product_truncated, abs_tol);
  expectClose(trialWeight(trial, "geometric"), expected.seq_geometric, abs_tol);
  expectClose(sum(tis) / tis.length, expected.tis_mean, abs_tol);
  expectClose(effectiveSampleFraction(raw), expected.ess_fraction_raw, abs_tol);
  expectClose(effectiveSampleFraction(tis), expected.ess_fraction_tis, abs_tol);
  expectClose(effectiveSampleFraction(icepop), expected.ess_fraction_icepop, abs_tol);
  const share = (claim: (w: number) => boolean) => raw.filter(claim).length / raw.length;
  expectClose(
    share((w) => w > inputs.C),
    expected.frac_above_C,
    abs_tol,
  );
  expectClose(
    share((w) => w < 1 / inputs.C),
    expected.frac_below_1_over_C,
    abs_tol,
  );
}

function decoupledCheck({ inputs, expected, abs_tol }: Vector): void {
  const mask = inputs.cur.map(() => 1);
  const trial = [{ proximal: inputs.prox, behaviour: inputs.behave, mask }];
  const bounds = { low: inputs.eps, high: inputs.eps };
  const objective: Objective = {
    ...objectiveOf("ppo", 1),
    policyLoss: { kind: "ppo-clip", bounds },
    importance: { kind: "truncate", level: "token", cap: inputs.cap },
  };
  const lossWith = (importance: Objective["importance"]) =>
    evaluateRow(
      objective,
      {
        current: inputs.cur,
        proximal: inputs.prox,
        mask,
        importance: importanceWeights(trial, importance).rows[0]!,
      },
      { advantage: inputs.adv, weight: 1 / mask.length },
    ).loss;
  const weights = importanceWeights(trial, objective.importance).rows[0]!;
  expectClose(weights, expected.behave_weight, abs_tol);
  const ratios = inputs.cur.map((lp: number, i: number) => Math.exp(logRatio(lp, inputs.prox[i]).value));
  expectClose(ratios, expected.prox_ratio, abs_tol);
  expectClose(ppoClip(inputs.cur, inputs.prox, inputs.adv, bounds).loss, expected.per_token_clipped, abs_tol);
  expectClose(lossWith(objective.importance), expected.loss_clamped, abs_tol);
  const masked = lossWith({ kind: "mask", level: "token", low: 0, high: 1.5 });
  expectClose(masked, expected["loss_masked_above_1.5_original_denominator"], abs_tol);
}

export const lossChecks: Record<string, Check> = {
  _batch: (vector) => {
    expect(vector.inputs).toHaveLength(3);
    for (const row of batch)
      expect(new Set([row.old, row.new, row.mask].map((column) => column.length))).toEqual(new Set([4]));
  },
  ratio_token: (vector) => {
    const ratios = batch.map((row) => row.new.map((lp, t) => Math.exp(logRatio(lp, row.old[t]!).value)));
    expectClose(ratios, vector.expected.ratio, vector.abs_tol);
  },
  ratio_gspo_sequence: (vector) => {
    const logs = batch.map((row) => logSequenceRatio([rowOf(row)]));
    expectClose(logs, vector.expected.log_s, vector.abs_tol);
    expectClose(logs.map(Math.exp), vector.expected.s, vector.abs_tol);
  },
  "gspo_clip_0.2_0.28": gspoCheck,
  "gspo_clip_3e-4_4e-4": gspoCheck,
  "ppo_clip_0.2_0.28": ppoCheck,
  "ppo_dual_clip_c3_0.2_0.28": ppoCheck,
  "cispo_high_0.28": (vector) => {
    const bounds = { high: vector.inputs.clip_high };
    const unmasked = batch.map((row) => Array.from(cispo(row.new, row.old, row.adv, bounds).loss));
    expectClose(unmasked, vector.expected.per_token_loss_unmasked, vector.abs_tol);
    expectClose(
      totalLoss(evaluateBatch(objectiveOf("cispo", 4))),
      vector.expected["token-mean"],
      vector.abs_tol,
    );
  },
  accum_global_vs_micro: ({ inputs, expected, abs_tol }) => {
    const denominators = stepDenominators(inputs.tokens);
    const contributions = inputs.numerators.map(
      (numerator: number, i: number) => numerator * tokenWeight("token-mean", denominators, inputs.tokens[i]),
    );
    expectClose(contributions, expected.correct_per_micro_contribution, abs_tol);
    expectClose(sum(contributions), expected.correct_total, abs_tol);
    const perMicro = inputs.numerators.map((numerator: number, i: number) => numerator / inputs.tokens[i]);
    expectClose(sum(perMicro) / perMicro.length, expected.buggy_total, abs_tol);
  },
  kl_estimators: ({ inputs, expected, abs_tol }) => {
    for (const estimator of ["k1", "k2", "k3"] as const) {
      const terms = inputs.logp.map((lp: number, i: number) => klTerm(estimator, lp, inputs.ref[i]));
      expectClose(
        terms.map((term: { value: number }) => term.value),
        expected[estimator],
        abs_tol,
      );
      if (estimator !== "k3") continue;
      const slopes = terms.map((term: { slope: number }) => term.slope);
      expectClose(slopes, expected.dk3_dlogp, abs_tol);
      const values: number[] = terms.map((term: { value: number }) => term.value);
      expectClose(sum(values) / values.length, expected.k3_mean, abs_tol);
    }
  },
  tis_icepop: importanceCheck,
  decoupled_ppo: decoupledCheck,
};
