/**
 * Owns how per-token losses become one number, and the denominators of that average.
 * Does not own the losses. The unit of a sequence-mean mode is the TRIAL, however many sequences its tree
 * yields (DESIGN §6).
 *
 *   token-mean               Σ M·L / N_tokens                    DAPO
 *   seq-mean-token-mean      mean over trials of Σ M·L / |M|     GRPO, GSPO
 *   seq-mean-token-sum       mean over trials of Σ M·L
 *   seq-mean-token-sum-norm  the former / horizon                Dr.GRPO
 *
 * All four are Σ over trials of weight(trial) · Σ M·L, so a micro-batch contributes its share by multiplying
 * with a weight fixed beforehand. The denominators are taken once over the whole optimiser step, before any
 * split: averaging the averages of micro-batches is a different (and common, and wrong) loss.
 */

export type Aggregation =
  | "token-mean"
  | "seq-mean-token-mean"
  | "seq-mean-token-sum"
  | "seq-mean-token-sum-norm";

export interface StepDenominators {
  readonly nTokens: number;
  /** Trials with at least one trained token; a fully masked trial does not dilute the others. */
  readonly nTrials: number;
}

/** Denominators of one optimiser step from the number of trained tokens of each of its trials. */
export function stepDenominators(trainedTokens: Iterable<number>): StepDenominators {
  let nTokens = 0;
  let nTrials = 0;
  for (const count of trainedTokens) {
    nTokens += count;
    if (count > 0) nTrials += 1;
  }
  return { nTokens, nTrials };
}

/**
 * The factor on every trained token's loss of a trial with `trainedTokens` trained tokens.
 * `horizon` (tokens) is required by seq-mean-token-sum-norm and ignored otherwise. 0 when nothing is trained.
 */
export function tokenWeight(
  aggregation: Aggregation,
  denominators: StepDenominators,
  trainedTokens: number,
  horizon?: number,
): number {
  if (trainedTokens === 0) return 0;
  switch (aggregation) {
    case "token-mean":
      return 1 / denominators.nTokens;
    case "seq-mean-token-mean":
      return 1 / (denominators.nTrials * trainedTokens);
    case "seq-mean-token-sum":
      return 1 / denominators.nTrials;
    case "seq-mean-token-sum-norm":
      if (horizon === undefined || !(horizon > 0)) {
        throw new RangeError("seq-mean-token-sum-norm needs a horizon above 0");
      }
      return 1 / (denominators.nTrials * horizon);
  }
}
