/**
 * Owns whether a score means what a probability means: of the attempts given about p, a share of about p is resolved.
 * Expected calibration error over bins of equal width (Naeini, Cooper and Hauskrecht 2015; Guo et al. 2017).
 */
import { mean, type ScoredAttempt } from "@mortise/objectives";

/** Bins of [0, 1]. */
export const CALIBRATION_BINS = 10;

export interface CalibrationBin {
  /** Scores from `from` up to and without `to`; the last bin holds 1 too. */
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** `null` in an empty bin. */
  readonly meanScore: number | null;
  /** Share of the bin's attempts that were resolved; `null` in an empty bin. */
  readonly resolvedShare: number | null;
}

/** @throws RangeError for a score outside [0, 1], which is no probability */
export function calibrationBins(
  attempts: readonly ScoredAttempt[],
  count: number = CALIBRATION_BINS,
): CalibrationBin[] {
  const wrong = attempts.find(({ score }) => !(score >= 0 && score <= 1));
  if (wrong) throw new RangeError(`a score of ${wrong.score} is no probability`);
  const bins: ScoredAttempt[][] = Array.from({ length: count }, () => []);
  for (const attempt of attempts) bins[Math.min(Math.floor(attempt.score * count), count - 1)]!.push(attempt);
  return bins.map((held, at) => ({
    from: at / count,
    to: (at + 1) / count,
    count: held.length,
    meanScore: mean(held.map(({ score }) => score)),
    resolvedShare: mean(held.map(({ isResolved }) => Number(isResolved))),
  }));
}

/** Mean over attempts of their bin's |mean score − resolved share|, in [0, 1]. `null` without attempts. */
export function expectedCalibrationError(bins: readonly CalibrationBin[]): number | null {
  const total = bins.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return null;
  return bins.reduce(
    (sum, { count, meanScore, resolvedShare }) =>
      count === 0 ? sum : sum + (count / total) * Math.abs(meanScore! - resolvedShare!),
    0,
  );
}
