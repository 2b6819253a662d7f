/**
 * Owns the precision–recall curve of "a score of at least t means resolved" over every t that changes what is accepted.
 */
import type { ScoredAttempt } from "@mortise/objectives";

export interface PrecisionRecallPoint {
  /** Attempts with this score or a higher one are accepted. */
  readonly threshold: number;
  /** Resolved of the accepted. */
  readonly precision: number;
  /** Accepted of the resolved. */
  readonly recall: number;
}

/** A point for each distinct score, the highest first; recall rises to 1. Empty where nothing was resolved. */
export function precisionRecallCurve(attempts: readonly ScoredAttempt[]): PrecisionRecallPoint[] {
  const falling = [...attempts].sort((a, b) => b.score - a.score);
  const nResolved = attempts.filter(({ isResolved }) => isResolved).length;
  if (nResolved === 0) return [];
  const points: PrecisionRecallPoint[] = [];
  let hits = 0;
  for (const [at, { score, isResolved }] of falling.entries()) {
    hits += Number(isResolved);
    if (falling[at + 1]?.score === score) continue;
    points.push({ threshold: score, precision: hits / (at + 1), recall: hits / nResolved });
  }
  return points;
}

/**
 * Σ (recall − recall of the point before) · precision: the mean precision at which resolved attempts are found, without
 * interpolation. `null` for an empty curve. A score that says nothing comes to the share of resolved attempts.
 */
export function averagePrecision(curve: readonly PrecisionRecallPoint[]): number | null {
  if (curve.length === 0) return null;
  return curve.reduce(
    (sum, { precision, recall }, at) => sum + (recall - (curve[at - 1]?.recall ?? 0)) * precision,
    0,
  );
}

/** At most `most` points, spread evenly over the curve, its last one always among them: for printing. */
export function thinned(curve: readonly PrecisionRecallPoint[], most: number): PrecisionRecallPoint[] {
  if (curve.length <= most) return [...curve];
  return Array.from({ length: most }, (_, at) => curve[Math.ceil(((at + 1) * curve.length) / most) - 1]!);
}
