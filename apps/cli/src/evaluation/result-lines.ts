/** Owns how the result of an evaluation reads on a terminal. Its numbers are result.ts's. */
import { counts, interval, percent, placeLines, row } from "../report/lines.js";
import type { EvaluationResult } from "./result.js";

export function resultLines(result: EvaluationResult): string[] {
  const { attempts, solving, model, harness, tasks, protocol } = result;
  const versions = harness.versions.filter((version) => version !== "unknown");
  return [
    `run ${result.run}`,
    row("protocol", `${protocol.name}  (${protocol.digest})`),
    row("model", [model.checkpoint, model.engine, ...model.servers, ...model.weights.map(short)].join(", ")),
    row("harness", [harness.name, ...versions].join(" ")),
    row("tasks", `${tasks.count}  (${short(tasks.digest)})`),
    ...placeLines(attempts),
    ...(attempts.retried === 0
      ? []
      : [row("", `${attempts.retried} trials repeat one that was lost or cancelled`)]),
    row(
      "solve rate",
      solving.rate === null
        ? "none: no attempt has a verdict that counts"
        : `${percent(solving.rate)} ${interval(solving.rateInterval)} over ${solving.tasks} tasks`,
    ),
    ...solving.at.map(({ k, pass, passHat }) =>
      row(`k = ${k}`, `pass@k ${percent(pass)}  pass^k ${percent(passHat)}`),
    ),
    row("difficulty", counts(result.difficulty)),
    row("ended", counts(result.byTermination)),
    row("verdicts", counts(result.byVerdict)),
  ];
}

function short(digest: string): string {
  return digest.slice(0, 12);
}
