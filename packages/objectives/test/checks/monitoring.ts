/** Checks of the consistency and alarm entries. */
import { expect } from "vitest";
import {
  CORRELATION_STOP,
  consistency,
  correlationAlarm,
  partialGroups,
  turnsAlarm,
  zeroVarianceFraction,
} from "../../src/index.js";
import { type Check, expectClose } from "./vector.js";

const FIELDS: Record<string, keyof ReturnType<typeof consistency>> = {
  pearson_prob: "pearsonProbability",
  pearson_logp: "pearsonLogp",
  mean_abs_dlogp: "meanAbsDeltaLogp",
  max_abs_dlogp: "maxAbsDeltaLogp",
  mean_abs_dprob: "meanAbsDeltaProbability",
  kl_k1_rollout_train: "kl1",
  kl_k3_rollout_train: "kl3",
  chi2_token: "chi2",
  ess_fraction: "essFraction",
  ppl_rollout: "perplexityRollout",
  ppl_train: "perplexityTrain",
  log_ppl_diff: "logPerplexityDifference",
};

const consistencyCheck: Check = ({ inputs, expected, abs_tol }) => {
  const measured = consistency(inputs.rollout_logp, inputs.train_logp);
  for (const [name, value] of Object.entries(expected)) expectClose(measured[FIELDS[name]!], value, abs_tol);
};

export const monitoringChecks: Record<string, Check> = {
  consistency_metrics: consistencyCheck,
  consistency_constant: consistencyCheck,
  alarms: ({ inputs, expected, abs_tol }) => {
    const batches = inputs.solved_of_8_per_group.map((solved: number[]) =>
      solved.map((nSolved) => ({ nSolved, nValid: 8 })),
    );
    expectClose(batches.map(zeroVarianceFraction), expected.zero_variance_fraction, abs_tol);
    expect(batches.map(partialGroups)).toEqual(expected.partial_groups);
    const stops = inputs.corr.map((value: number) => correlationAlarm(value)?.threshold === CORRELATION_STOP);
    expect(stops).toEqual(expected.corr_alarm);
    expect(inputs.mean_turns.map((turns: number) => turnsAlarm(turns) !== null)).toEqual(
      expected["turn_alarm_at_1.5"],
    );
  },
};
