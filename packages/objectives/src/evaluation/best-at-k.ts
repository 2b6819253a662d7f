/**
 * Owns the judgement of a learned verifier: its score of an attempt, and how well choosing by score does.
 * Does not own the model that scores.
 */
import { subsetShare } from "./combinations.js";

export interface ScoredAttempt {
  readonly score: number;
  readonly isResolved: boolean;
}

/** Probability of "yes" from the log-probabilities of the two answers: e^yes / (e^yes + e^no). */
export function yesProbability(logYes: number, logNo: number): number {
  return 1 / (1 + Math.exp(logNo - logYes));
}

/**
 * Expected resolution when the best-scored of k random attempts is taken, exact over all k-subsets; attempts
 * that tie for best count with their mean. `null` when k exceeds the number of attempts.
 *
 * The best score of a subset is s with the share of subsets inside {≤ s} but not inside {< s}, and by symmetry
 * the tied attempts of score s are equally likely in it.
 */
export function bestAtK(attempts: readonly ScoredAttempt[], k: number): number | null {
  const n = attempts.length;
  if (k > n || k < 1) return null;
  let expected = 0;
  for (const score of new Set(attempts.map((attempt) => attempt.score))) {
    const tied = attempts.filter((attempt) => attempt.score === score);
    const nBelow = attempts.filter((attempt) => attempt.score < score).length;
    const share = subsetShare(nBelow + tied.length, n, k) - subsetShare(nBelow, n, k);
    expected += share * (tied.filter((attempt) => attempt.isResolved).length / tied.length);
  }
  return expected;
}

/** Precision and recall of "score ≥ threshold means resolved"; `null` where the denominator is 0. */
export function precisionRecall(attempts: readonly ScoredAttempt[], threshold: number) {
  const accepted = attempts.filter((attempt) => attempt.score >= threshold);
  const nHit = accepted.filter((attempt) => attempt.isResolved).length;
  const nResolved = attempts.filter((attempt) => attempt.isResolved).length;
  return {
    precision: accepted.length === 0 ? null : nHit / accepted.length,
    recall: nResolved === 0 ? null : nHit / nResolved,
  };
}
