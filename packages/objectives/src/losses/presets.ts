/**
 * Owns the named algorithms: which estimator, loss, clip and averaging each name stands for.
 * Does not own the formulas; every field can be overridden by configuration.
 *
 * | name    | advantage | policy loss        | clip          | averaging               |
 * |---------|-----------|--------------------|---------------|-------------------------|
 * | gspo    | grpo      | sequence ratio     | 3e-4 / 4e-4   | seq-mean-token-mean     |
 * | grpo    | grpo      | token ratio        | 0.2 / 0.2     | seq-mean-token-mean     |
 * | drgrpo  | drgrpo    | token ratio        | 0.2 / 0.2     | seq-mean-token-sum-norm |
 * | dapo    | grpo      | token ratio        | 0.2 / 0.28    | token-mean              |
 * | cispo   | grpo      | clipped weight     | – / 0.28      | token-mean              |
 * | ppo     | grpo      | token ratio, dual 3| 0.2 / 0.2     | token-mean              |
 * | rloo    | rloo      | REINFORCE          | –             | token-mean              |
 * | rft     | success   | REINFORCE          | –             | token-mean              |
 *
 * `rft` is online rejection-sampling fine-tuning, a baseline: the likelihood of the successes of each batch is
 * raised, and the failures stay out of the loss. With advantage 1, REINFORCE is that negative log-likelihood.
 * `ppo` has no critic: its baseline is the group mean. DAPO's refill of uniform groups belongs to the
 * scheduler; dropping them is common to all (see group-advantages.ts).
 */
import type { Aggregation } from "./aggregation.js";
import type { Objective, PolicyLoss } from "./objective.js";

export const ALGORITHMS = ["gspo", "grpo", "drgrpo", "dapo", "cispo", "ppo", "rloo", "rft"] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

/** The objective a name stands for. `horizon` (tokens) is used by drgrpo only. */
export function objectiveOf(algorithm: Algorithm, horizon: number): Objective {
  switch (algorithm) {
    case "gspo":
      return plain({ kind: "gspo", bounds: { low: 3e-4, high: 4e-4 } }, "seq-mean-token-mean");
    case "grpo":
      return plain({ kind: "ppo-clip", bounds: { low: 0.2, high: 0.2 } }, "seq-mean-token-mean");
    case "drgrpo":
      return {
        ...plain({ kind: "ppo-clip", bounds: { low: 0.2, high: 0.2 } }, "seq-mean-token-sum-norm"),
        advantage: { estimator: "drgrpo" },
        horizon,
      };
    case "dapo":
      return plain({ kind: "ppo-clip", bounds: { low: 0.2, high: 0.28 } }, "token-mean");
    case "cispo":
      return plain({ kind: "cispo", bounds: { high: 0.28 } }, "token-mean");
    case "ppo":
      return plain({ kind: "ppo-clip", bounds: { low: 0.2, high: 0.2, dual: 3 } }, "token-mean");
    case "rloo":
      return { ...plain({ kind: "reinforce" }, "token-mean"), advantage: { estimator: "rloo" } };
    case "rft":
      return { ...plain({ kind: "reinforce" }, "token-mean"), advantage: { estimator: "success" } };
  }
}

function plain(policyLoss: PolicyLoss, aggregation: Aggregation): Objective {
  return {
    advantage: { estimator: "grpo" },
    policyLoss,
    aggregation,
    importance: { kind: "none" },
    entropyCoefficient: 0,
  };
}
