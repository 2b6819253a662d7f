/** Checks of the advantage entries. */
import { expect } from "vitest";
import { type AdvantageOptions, groupAdvantages } from "../../src/index.js";
import { type Check, expectClose, type Vector } from "./vector.js";

function members({ inputs }: Vector) {
  return inputs.rewards.map((reward: number, i: number) => ({
    reward,
    isValid: inputs.valid === undefined || inputs.valid[i] === 1,
  }));
}

function check(options: (vector: Vector) => AdvantageOptions, dropped: string | null = null): Check {
  return (vector) => {
    const result = groupAdvantages(members(vector), options(vector));
    expectClose(result.advantages, vector.expected.advantages, vector.abs_tol);
    for (const field of ["mean", "std"] as const) {
      if (field in vector.expected) expectClose(result[field], vector.expected[field], vector.abs_tol);
    }
    if ("n_valid" in vector.expected) expect(result.nValid).toBe(vector.expected.n_valid);
    expect(result.dropped).toBe(dropped);
  };
}

const grpo = ({ inputs }: Vector): AdvantageOptions => ({
  estimator: "grpo",
  epsilon: inputs.eps,
  ddof: inputs.ddof ?? 1,
  ...(inputs.equal_tol === undefined ? {} : { equalTolerance: inputs.equal_tol }),
});

export const advantageChecks: Record<string, Check> = {
  "adv_grpo_bessel_1e-6": check(grpo),
  "adv_grpo_bessel_1e-4": check(grpo),
  "adv_grpo_population_1e-6": check(grpo),
  adv_drgrpo: check(() => ({ estimator: "drgrpo" })),
  adv_rloo: check(() => ({ estimator: "rloo" })),
  adv_all_equal_one: (vector) => {
    for (const estimator of ["grpo", "drgrpo", "rloo"] as const) {
      check(() => ({ estimator, epsilon: vector.inputs.eps }), "zero-variance")(vector);
    }
  },
  adv_all_equal_float: (vector) => {
    check(grpo, "zero-variance")(vector);
    const rewards: number[] = vector.inputs.rewards;
    const naiveMean = rewards.reduce((total, reward) => total + reward, 0) / rewards.length;
    expectClose(rewards[0]! - naiveMean, vector.expected.naive_f64_residue, 1e-25);
  },
  adv_group_size_1: check(grpo, "too-few-valid"),
  adv_infra_masked: check(grpo),
  adv_infra_masked_nemo3467: (vector) => {
    const centred = groupAdvantages(members(vector), { estimator: "drgrpo" });
    expectClose(centred.advantages, vector.expected.centred, vector.abs_tol);
    const normalised = groupAdvantages(members(vector), { estimator: "grpo", epsilon: 0 });
    expectClose(normalised.advantages, vector.expected.normalised_no_eps, vector.abs_tol);
  },
};
