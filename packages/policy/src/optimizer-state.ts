/**
 * Owns what all backends share about AdamW: the update factors, the clip factor, and how the state is stored.
 * torch's order: decay first, bias-corrected moments, eps outside the root.
 */
import { MortiseError } from "@mortise/contracts";
import type { AdamWStep } from "./model.js";
import type { ParameterSpec } from "./parameter-table.js";

/** Added to the norm when clipping, as torch's clip_grad_norm_ does. */
const CLIP_EPSILON = 1e-6;

export interface AdamWFactors {
  readonly rate: number;
  readonly rootCorrection: number;
}

/** @param update 1 for the first update */
export function adamWFactors({ lr, beta1, beta2 }: AdamWStep, update: number): AdamWFactors {
  return { rate: lr / (1 - beta1 ** update), rootCorrection: 1 / Math.sqrt(1 - beta2 ** update) };
}

/** min(1, max / (norm + 1e-6)). */
export function clipScale(norm: number, maxNorm: number): number {
  return Math.min(1, maxNorm / (norm + CLIP_EPSILON));
}

/** What decoupled decay multiplies a weight with. */
export function decayFactor(
  { lr, weightDecay, decay = "all" }: AdamWStep,
  role: ParameterSpec["role"],
): number {
  return decay === "matrices" && role !== "matrix" ? 1 : 1 - lr * weightDecay;
}

/** @throws MortiseError for values that would destroy the weights silently. */
export function checkStep(step: AdamWStep): void {
  const limits: [keyof AdamWStep, (value: number) => boolean, string][] = [
    ["lr", (x) => Number.isFinite(x) && x >= 0, "0 or more"],
    ["beta1", (x) => x >= 0 && x < 1, "in [0, 1)"],
    ["beta2", (x) => x >= 0 && x < 1, "in [0, 1)"],
    ["eps", (x) => Number.isFinite(x) && x > 0, "above 0"],
    ["weightDecay", (x) => Number.isFinite(x) && x >= 0, "0 or more"],
    ["maxGradientNorm", (x) => x > 0, "above 0 (Infinity never clips)"],
  ];
  for (const [field, holds, rule] of limits) {
    if (!holds(step[field] as number)) {
      throw new MortiseError({
        code: "MORTISE_CONFIG_INVALID",
        message: `optimizer.${field} is ${step[field]}.`,
        fix: `Set ${field} to a number ${rule}.`,
        detail: { field },
      });
    }
  }
}

/** One AdamW update of a tensor in place, in float64 arithmetic. The embedded engine has its own kernel. */
export function updateTensor(
  values: {
    p: Float32Array | Float64Array;
    g: Float32Array | Float64Array;
    m: Float32Array | Float64Array;
    v: Float32Array | Float64Array;
  },
  step: AdamWStep,
  { clip, keep, update }: { clip: number; keep: number; update: number },
): void {
  const { p, g, m, v } = values;
  const { rate, rootCorrection } = adamWFactors(step, update);
  for (let i = 0; i < p.length; i++) {
    const gradient = g[i]! * clip;
    const first = step.beta1 * m[i]! + (1 - step.beta1) * gradient;
    const second = step.beta2 * v[i]! + (1 - step.beta2) * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = p[i]! * keep - (rate * first) / (Math.sqrt(second) * rootCorrection + step.eps);
  }
}

/** Prefixes of the moments in an exported state; the number of updates is in the metadata. */
export const FIRST_MOMENT = "m.";
export const SECOND_MOMENT = "v.";
export const UPDATES = "updates";

/** @throws MortiseError when the count is not a whole number. */
export function parseUpdates(metadata: Readonly<Record<string, string>>): number {
  const updates = Number(metadata[UPDATES]);
  if (Number.isInteger(updates) && updates >= 0) return updates;
  throw new MortiseError({
    code: "MORTISE_POLICY_SAFETENSORS",
    message: `optimizer state: __metadata__.${UPDATES} is ${JSON.stringify(metadata[UPDATES] ?? null)}.`,
    fix: "Use a file written by exportOptimizer.",
  });
}
