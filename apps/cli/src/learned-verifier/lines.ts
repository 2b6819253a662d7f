/** Owns how a learned verifier's results read on a terminal. */
import { type Estimate, thinned } from "@mortise/evaluation";
import { interval, percent, row } from "../report/lines.js";
import type { SetScoring } from "./scored-attempts.js";
import type { Manifest } from "./verifier-directory.js";

/** Points of a precision–recall curve in lines; `--json` has all. */
const SHOWN_POINTS = 5;

export function trainedLines(
  out: string,
  { data, training, trainedTasks, heldOutTasks }: Manifest,
): string[] {
  return [
    `${data.examples} examples of ${trainedTasks.length} tasks, ${data.resolved} resolved and ${data.unresolved} unresolved, ${data.shortened} shortened`,
    `${training.steps} steps, last loss ${training.loss.toFixed(3)}; ${heldOutTasks.length} tasks held out`,
    `verifier: ${out}`,
  ];
}

export function scoringLines(scoring: SetScoring): string[] {
  const { run, set, tasks, attempts, resolved, scaling, calibration, precisionRecall } = scoring;
  const { averagePrecision, curve } = precisionRecall;
  return [
    "",
    `${run}/${set}: ${attempts} attempts at ${tasks} tasks, ${resolved} resolved`,
    ...scaling.map(({ n, best, oracle }) =>
      row(`n = ${n}`, `best@n ${percent(best)}  oracle ${percent(oracle)}`),
    ),
    row("gain", estimateText(scoring.gain)),
    row("AUC", `${estimateText(scoring.auc)}; within tasks ${estimateText(scoring.aucWithinTasks)}`),
    row("calibration", `expected error ${shareText(calibration.expectedError)}`),
    ...calibration.bins.flatMap(({ from, to, count, meanScore, resolvedShare }) =>
      count === 0
        ? []
        : [
            row(
              "",
              `p ${from.toFixed(1)} to ${to.toFixed(1)}: ${count} attempts, mean p ${percent(meanScore!)}, resolved ${percent(resolvedShare!)}`,
            ),
          ],
    ),
    row("precision", `average ${shareText(averagePrecision)}`),
    ...thinned(curve, SHOWN_POINTS).map(({ threshold, precision, recall }) =>
      row(
        "",
        `p at least ${threshold.toFixed(3)}: precision ${percent(precision)}, recall ${percent(recall)}`,
      ),
    ),
  ];
}

function estimateText({ value, interval: bounds }: Estimate): string {
  return value === null ? "unknown" : `${percent(value)} ${interval(bounds)}`.trimEnd();
}

function shareText(value: number | null): string {
  return value === null ? "unknown" : percent(value);
}
