/** From a run's configuration to the objective. */
import { RunConfig } from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { objectiveOfRun } from "../src/objective-of-run.js";

function configured(trainer: Record<string, unknown>): RunConfig {
  return RunConfig.parse({ run: { id: "r1" }, policy: { checkpoint: "/nowhere" }, trainer });
}

describe("the objective of a run", () => {
  test("GSPO by default, with its own clip and averaging", () => {
    const objective = objectiveOfRun(configured({}));
    expect(objective.policyLoss).toEqual({ kind: "gspo", bounds: { low: 3e-4, high: 4e-4 } });
    expect(objective.aggregation).toBe("seq-mean-token-mean");
    expect(objective.importance).toEqual({ kind: "none" });
    expect(objective.kl).toBeUndefined();
  });

  test("the quick-start recipe", () => {
    const objective = objectiveOfRun(
      configured({
        algorithm: "grpo",
        clipLow: 0.2,
        clipHigh: 0.28,
        aggregation: "token-mean",
        advantageEps: 1e-4,
      }),
    );
    expect(objective.policyLoss).toEqual({ kind: "ppo-clip", bounds: { low: 0.2, high: 0.28 } });
    expect(objective.aggregation).toBe("token-mean");
    expect(objective.advantage).toEqual({ estimator: "grpo", epsilon: 1e-4 });
  });

  test("proximal ratios are corrected for the engine, KL and entropy are taken over", () => {
    const objective = objectiveOfRun(
      configured({
        algorithm: "dapo",
        ratio: "proximal",
        importanceCap: 3,
        klCoefficient: 0.01,
        klEstimator: "k2",
        entropyCoefficient: 0.1,
      }),
    );
    expect(objective.importance).toEqual({ kind: "truncate", level: "token", cap: 3 });
    expect(objective.kl).toEqual({ estimator: "k2", coefficient: 0.01 });
    expect(objective.entropyCoefficient).toBe(0.1);
  });

  test.each(["gspo", "grpo", "drgrpo", "rloo", "dapo", "cispo", "ppo"])(
    "%s is meaningful as it is",
    (algorithm) => {
      expect(() => objectiveOfRun(configured({ algorithm }))).not.toThrow();
    },
  );

  test("GSPO averaged over tokens is refused with the field", () => {
    expect(() => objectiveOfRun(configured({ algorithm: "gspo", aggregation: "token-mean" }))).toThrow(
      /trainer\.aggregation/,
    );
  });
});
