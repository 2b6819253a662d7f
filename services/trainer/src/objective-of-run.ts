/**
 * Owns the translation of a run's `[trainer]` section into the objective the mathematics understands.
 * Does not own formulas or defaults of algorithms (packages/objectives).
 */
import { MortiseError, type RunConfig } from "@mortise/contracts";
import { type Objective, objectiveOf, objectiveProblem, type PolicyLoss } from "@mortise/objectives";

/** The objective of a run. @throws MortiseError MORTISE_CONFIG_INVALID for a combination that has no meaning. */
export function objectiveOfRun(config: RunConfig): Objective {
  const { trainer, rollout } = config;
  const preset = objectiveOf(trainer.algorithm, rollout.maxResponseTokens);
  const aggregation = trainer.aggregation === "default" ? preset.aggregation : trainer.aggregation;
  const objective: Objective = {
    ...preset,
    advantage: { ...preset.advantage, epsilon: trainer.advantageEps },
    policyLoss: withClip(preset.policyLoss, trainer.clipLow, trainer.clipHigh),
    aggregation,
    horizon: rollout.maxResponseTokens,
    importance:
      trainer.ratio === "proximal"
        ? { kind: "truncate", level: "token", cap: trainer.importanceCap }
        : { kind: "none" },
    ...(trainer.klCoefficient > 0
      ? { kl: { estimator: trainer.klEstimator, coefficient: trainer.klCoefficient } }
      : {}),
    entropyCoefficient: trainer.entropyCoefficient,
  };
  const problem = objectiveProblem(objective);
  if (problem === null) return objective;
  throw new MortiseError({
    code: "MORTISE_CONFIG_INVALID",
    message: `trainer.aggregation is ${JSON.stringify(trainer.aggregation)} with trainer.algorithm ${JSON.stringify(trainer.algorithm)}: ${problem}.`,
    detail: { field: "trainer.aggregation" },
  });
}

function withClip(loss: PolicyLoss, low: number | undefined, high: number | undefined): PolicyLoss {
  const given = { ...(low === undefined ? {} : { low }), ...(high === undefined ? {} : { high }) };
  switch (loss.kind) {
    case "reinforce":
      return loss;
    case "cispo":
      return { kind: "cispo", bounds: { ...loss.bounds, ...given } };
    case "ppo-clip":
    case "gspo":
      return { kind: loss.kind, bounds: { ...loss.bounds, ...given } };
  }
}
