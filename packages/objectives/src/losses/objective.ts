/**
 * Owns the whole training objective of one sequence: policy loss × importance weight + β·KL − c·entropy, each
 * averaged with the same weights, and the gradient handed to the policy's backward pass.
 * Does not own forward or backward passes, batching or rewards.
 *
 *   total = Σ_t M_t · weight · (w_t·L_t + β·KL_t − c·H_t)
 *   gradient[t] = d total / d lp_t;  entropyGradient = d total / d H_t (the same for every trained token)
 */
import type { AdvantageOptions } from "../advantages/group-advantages.js";
import type { Aggregation } from "./aggregation.js";
import { type CispoBounds, cispo } from "./cispo.js";
import type { ClipBounds } from "./clip-ratio.js";
import { gspo } from "./gspo.js";
import type { ImportanceCorrection } from "./importance.js";
import { type KlEstimator, klTerm } from "./kl.js";
import { ppoClip } from "./ppo-clip.js";
import { reinforce } from "./reinforce.js";
import type { TokenTerms } from "./token-terms.js";

export type PolicyLoss =
  | { readonly kind: "ppo-clip"; readonly bounds: ClipBounds }
  | { readonly kind: "gspo"; readonly bounds: ClipBounds }
  | { readonly kind: "cispo"; readonly bounds: CispoBounds }
  | { readonly kind: "reinforce" };

export interface Objective {
  readonly advantage: AdvantageOptions;
  readonly policyLoss: PolicyLoss;
  readonly aggregation: Aggregation;
  /** Tokens; only for seq-mean-token-sum-norm. */
  readonly horizon?: number;
  readonly importance: ImportanceCorrection;
  readonly kl?: { readonly estimator: KlEstimator; readonly coefficient: number };
  readonly entropyCoefficient: number;
}

/** One sequence at the moment of its backward pass. All arrays have the length of `current`. */
export interface ObjectiveRow {
  readonly current: ArrayLike<number>;
  readonly proximal: ArrayLike<number>;
  readonly mask: ArrayLike<number>;
  /** Required when the objective has a KL term. */
  readonly reference?: ArrayLike<number>;
  /** From `importanceWeights`; absent = 1 everywhere. */
  readonly importance?: ArrayLike<number>;
  /** Entropy of the distribution at each position, in nats; required when its coefficient is not 0. */
  readonly entropy?: ArrayLike<number>;
}

/** What a sequence needs to know of its trial and step. */
export interface RowContext {
  readonly advantage: number;
  /** From `tokenWeight`. */
  readonly weight: number;
  /** From `logSequenceRatio` over the whole trial; required by GSPO. */
  readonly logSequenceRatio?: number;
}

export interface RowOutcome {
  /** This sequence's contribution to the step's loss: add them up. */
  readonly loss: number;
  readonly gradient: Float64Array;
  readonly entropyGradient: number;
  readonly policyLoss: number;
  /** Contributions to the aggregated KL and entropy, before their coefficients. */
  readonly kl: number;
  readonly entropy: number;
  readonly nTrained: number;
  readonly nClipped: number;
}

/**
 * Why this combination of choices is not a meaningful objective, or `null` when it is.
 * Checked once, where a configuration is read.
 */
export function objectiveProblem(objective: Objective): string | null {
  const { policyLoss, aggregation, horizon } = objective;
  if (policyLoss.kind === "gspo" && aggregation !== "seq-mean-token-mean") {
    return `gspo is defined for seq-mean-token-mean only; ${aggregation} would scale each trial by its length`;
  }
  if (aggregation === "seq-mean-token-sum-norm" && !(horizon !== undefined && horizon > 0)) {
    return "seq-mean-token-sum-norm divides by a horizon in tokens, which must be above 0";
  }
  return null;
}

/** Loss contribution and gradients of one sequence. Throws RangeError when a needed column is absent. */
export function evaluateRow(objective: Objective, row: ObjectiveRow, context: RowContext): RowOutcome {
  const { kl: klSpec, entropyCoefficient } = objective;
  if (klSpec && !row.reference) throw new RangeError("the KL term needs reference log-probabilities");
  if (entropyCoefficient !== 0 && !row.entropy) throw new RangeError("the entropy term needs entropies");
  const terms = policyTerms(objective.policyLoss, row, context);
  const gradient = new Float64Array(row.current.length);
  const totals = { policyLoss: 0, kl: 0, entropy: 0, nTrained: 0, nClipped: 0 };
  for (let t = 0; t < gradient.length; t++) {
    if (row.mask[t] === 0) continue;
    const importance = row.importance?.[t] ?? 1;
    let slope = importance * terms.slope[t]!;
    totals.policyLoss += importance * terms.loss[t]!;
    totals.nTrained += 1;
    totals.nClipped += terms.clipped[t]!;
    totals.entropy += row.entropy?.[t] ?? 0;
    if (klSpec) {
      const kl = klTerm(klSpec.estimator, row.current[t]!, row.reference![t]!);
      totals.kl += kl.value;
      slope += klSpec.coefficient * kl.slope;
    }
    gradient[t] = context.weight * slope;
  }
  const policyLoss = context.weight * totals.policyLoss;
  const kl = context.weight * totals.kl;
  const entropy = context.weight * totals.entropy;
  const loss = policyLoss + (klSpec?.coefficient ?? 0) * kl - entropyCoefficient * entropy;
  const entropyGradient = -entropyCoefficient * context.weight;
  return { ...totals, loss, gradient, entropyGradient, policyLoss, kl, entropy };
}

function policyTerms(loss: PolicyLoss, row: ObjectiveRow, context: RowContext): TokenTerms {
  switch (loss.kind) {
    case "ppo-clip":
      return ppoClip(row.current, row.proximal, context.advantage, loss.bounds);
    case "gspo":
      if (context.logSequenceRatio === undefined)
        throw new RangeError("GSPO needs the log-ratio of the whole trial");
      return gspo(row.current.length, context.logSequenceRatio, context.advantage, loss.bounds);
    case "cispo":
      return cispo(row.current, row.proximal, context.advantage, loss.bounds);
    case "reinforce":
      return reinforce(row.current, context.advantage);
  }
}
