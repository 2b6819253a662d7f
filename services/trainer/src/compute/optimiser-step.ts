/** Owns the translation of configured optimiser settings into one AdamW update of the policy. */
import type { OptimiserConfig } from "@mortise/contracts";
import type { AdamWStep } from "@mortise/policy";

export function optimiserStep(config: OptimiserConfig, learningRate: number): AdamWStep {
  return {
    lr: learningRate,
    beta1: config.beta1,
    beta2: config.beta2,
    eps: config.eps,
    weightDecay: config.weightDecay,
    maxGradientNorm: config.maxGradientNorm,
    decay: "matrices",
  };
}
