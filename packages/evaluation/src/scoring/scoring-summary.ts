/**
 * Owns the numbers told of a score of attempts that is meant as the probability of their being resolved: what choosing by
 * it is worth, how it ranks, whether it is calibrated. Equal best@n can hide scores of very different use, so all are told.
 */
import { bestAtK, mean } from "@mortise/objectives";
import {
  BOOTSTRAP,
  type BootstrapSettings,
  bootstrapInterval,
  type Interval,
} from "../statistics/bootstrap.js";
import { type ScalingPoint, type ScoredTask, scalingCurve } from "../statistics/scaling.js";
import { type CalibrationBin, calibrationBins, expectedCalibrationError } from "./calibration.js";
import { averagePrecision, type PrecisionRecallPoint, precisionRecallCurve } from "./precision-recall.js";
import { rocAuc, withinTaskAuc } from "./ranking.js";

/** With a 95 % interval, bootstrapped over tasks; `null` where a resample leaves the statistic undefined. */
export interface Estimate {
  readonly value: number | null;
  readonly interval: Interval | null;
}

export interface ScoringSummary {
  readonly tasks: number;
  readonly attempts: number;
  readonly resolved: number;
  /** best@n against the oracle's pass@n, for n = 1, 2, 4, … up to what every task has; at 1 both are the solve rate. */
  readonly scaling: readonly ScalingPoint[];
  /** best@n − best@1 at the largest n of the curve: what choosing gains over taking any. */
  readonly gain: Estimate;
  readonly auc: Estimate;
  readonly aucWithinTasks: Estimate;
  readonly calibration: {
    readonly expectedError: number | null;
    readonly bins: readonly CalibrationBin[];
  };
  readonly precisionRecall: {
    readonly averagePrecision: number | null;
    readonly curve: readonly PrecisionRecallPoint[];
  };
}

/**
 * @param tasks each with at least one attempt; scores are probabilities
 * @throws RangeError for a score outside [0, 1]
 */
export function scoringSummary(
  tasks: readonly ScoredTask[],
  settings: BootstrapSettings = BOOTSTRAP,
): ScoringSummary {
  const attempts = attemptsOf(tasks);
  const scaling = scalingCurve(tasks);
  const most = scaling.at(-1)?.n ?? 0;
  const gains = tasks.map((task) => bestAtK(task.attempts, most)! - bestAtK(task.attempts, 1)!);
  const bins = calibrationBins(attempts);
  const curve = precisionRecallCurve(attempts);
  const estimate = (of: (drawn: readonly ScoredTask[]) => number | null): Estimate => ({
    value: of(tasks),
    interval: bootstrapInterval(tasks, of, settings),
  });
  return {
    tasks: tasks.length,
    attempts: attempts.length,
    resolved: attempts.filter(({ isResolved }) => isResolved).length,
    scaling,
    gain: { value: mean(gains), interval: bootstrapInterval(gains, mean, settings) },
    auc: estimate((drawn) => rocAuc(attemptsOf(drawn))),
    aucWithinTasks: estimate(withinTaskAuc),
    calibration: { expectedError: expectedCalibrationError(bins), bins },
    precisionRecall: { averagePrecision: averagePrecision(curve), curve },
  };
}

function attemptsOf(tasks: readonly ScoredTask[]) {
  return tasks.flatMap(({ attempts }) => attempts);
}
