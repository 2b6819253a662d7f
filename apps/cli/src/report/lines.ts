/** Owns how a report reads on a terminal. Its numbers are run-report.ts's. */
import type { Interval, PlaceCounts, SetReport, Spread, TaskChange } from "@mortise/evaluation";
import type { SetBehaviour } from "./behaviours.js";
import type { RunReport, SetComparison } from "./run-report.js";

/** Tasks named in one line of changes. */
const NAMED_TASKS = 8;

export function reportLines(report: RunReport): string[] {
  const { run, source, harness, harnessVersions, protocol, regraded, sets } = report;
  const versions = harnessVersions.filter((version) => version !== "unknown");
  return [
    `run ${run}  (${source}, harness ${[harness ?? "unknown", ...versions].join(" ")})`,
    ...(protocol === null ? [] : [`protocol ${protocol.name}  (${protocol.digest})`]),
    ...(regraded === 0 ? [] : [`${regraded} trials count with a later judgement of their evidence`]),
    ...sets.flatMap((set) => [
      "",
      ...setLines(set),
      ...(report.behaviour ?? []).filter((row) => row.set === set.set).flatMap(behaviourLines),
    ]),
    ...(report.behaviourAbsent === null ? [] : ["", `behaviour: absent, ${report.behaviourAbsent}`]),
  ];
}

function setLines(set: SetReport): string[] {
  const { solving, groups, lost } = set;
  const { shapes } = solving;
  return [
    `${set.set}: ${set.trials} trials, ${lost.trials} lost (${lost.retried} tried again, ${lost.tasks} tasks without any attempt left)`,
    ...placeLines(set.places),
    row("ended", counts(set.byTermination)),
    row("verdicts", counts(set.byVerdict)),
    row(
      "solve rate",
      solving.rate === null
        ? "none: no attempt has a valid verdict"
        : `${percent(solving.rate)} ${interval(solving.rateInterval)} over ${solving.tasks} tasks; ${solving.solved} of ${solving.attempts} attempts ${interval(solving.attemptInterval)}`,
    ),
    row("tasks", `${shapes.allPass} all-pass, ${shapes.allFail} all-fail, ${shapes.mixed} mixed`),
    row("groups", `${groups.allPass} all-pass, ${groups.allFail} all-fail, ${groups.mixed} mixed`),
    ...solving.at.map(({ k, pass, passHat, mixed }) =>
      row(`k = ${k}`, `pass@k ${percent(pass)}  pass^k ${percent(passHat)}  mixed@k ${percent(mixed)}`),
    ),
    ...set.scaling.map(({ n, best, oracle }) =>
      row(`n = ${n}`, `best@n ${percent(best)}  oracle ${percent(oracle)}`),
    ),
    row("attempts", `${spreadText(set.attemptsPerTask)} a task`),
    row("tokens", `${spreadText(set.sampledTokens)} a trial, sampled`),
    row("turns", `${spreadText(set.turns)} a trial`),
    ...Object.entries(set.stagesMs).map(([stage, spread]) => row(stage, `${spreadText(spread)} ms`)),
  ];
}

export function placeLines({
  expected,
  executed,
  resolved,
  resolvedInterval,
  lost,
  lostBy,
  open,
  bounds,
}: PlaceCounts): string[] {
  const share =
    executed === 0 ? "" : `, ${percent(resolved / executed)} ${interval(resolvedInterval)} of the executed`;
  const missing = [
    ...(lost === 0 ? [] : [`${lost} given up (${counts(lostBy)})`]),
    ...(open === null || open === 0 ? [] : [`${open} open`]),
  ];
  const between =
    bounds === null ? "" : `: of the expected between ${percent(bounds[0])} and ${percent(bounds[1])}`;
  return [
    row(
      "places",
      `${resolved} resolved of ${executed} executed of ${expected ?? "unknown"} expected${share}`,
    ),
    ...(missing.length === 0 ? [] : [row("", `${missing.join(", ")}${between}`)]),
  ];
}

function behaviourLines(shown: SetBehaviour): string[] {
  const share = (value: number | null) => (value === null ? "–" : percent(value));
  const count = (value: number | null) => (value === null ? "–" : String(Number(value.toFixed(2))));
  const categories = Object.entries(shown.callsBy).filter(([, calls]) => (calls ?? 0) > 0);
  return [
    row(
      "behaviour",
      `${shown.harness}, ${shown.trials} trials: ${count(shown.callsPerTrial)} calls a trial (${categories.map(([name, calls]) => `${name} ${count(calls)}`).join(", ")}), ${share(shown.malformedShare)} malformed`,
    ),
    row("", `files read before the first edit ${count(shown.filesReadBeforeEdit)}`),
    row(
      "",
      `reproduces first ${share(shown.reproducesFirst)}, rereads an edited file ${share(shown.rereadsEdited)}`,
    ),
    row("", `runs tests ${share(shown.runsTests)}, after the last edit ${share(shown.testsAfterEdit)}`),
    row(
      "",
      `explicit finish ${share(shown.explicitFinish)}, solved despite a failed command ${share(shown.solvedDespiteFailure)}`,
    ),
  ];
}

export function comparisonLines(comparison: SetComparison): string[] {
  const { from, to, tasks, points, pointsInterval, onlyBefore, onlyAfter, varied } = comparison;
  const side = ({ run, set }: SetComparison["from"]) => `${run}/${set}`;
  return [
    "",
    `${side(from)} -> ${side(to)}: ${tasks} tasks on both sides, ${onlyBefore} and ${onlyAfter} on one`,
    ...varied.map(({ field, before, after }) => row("varied", `${field}: ${before} -> ${after}`)),
    row(
      "difference",
      points === null
        ? "none: no task was attempted on both sides"
        : `${signed(points)} points${pointsInterval === null ? "" : ` [${pointsInterval.map(signed).join(", ")}]`} (95 %, paired over tasks)`,
    ),
    row("won", named(comparison.won)),
    row("lost", named(comparison.lost)),
    row("better", named(comparison.better)),
    row("worse", named(comparison.worse)),
  ];
}

export function row(name: string, value: string): string {
  return `  ${name.padEnd(12)}${value}`;
}

export function counts(by: Readonly<Partial<Record<string, number>>>): string {
  return Object.entries(by)
    .map(([name, count]) => `${count} ${name}`)
    .join(", ");
}

export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

export function interval(bounds: Interval | null): string {
  return bounds === null ? "" : `[${bounds.map((bound) => (100 * bound).toFixed(1)).join(", ")}]`;
}

function signed(points: number): string {
  return `${points < 0 ? "" : "+"}${points.toFixed(1)}`;
}

function spreadText({ count, mean, median, p95, max }: Spread): string {
  if (count === 0) return "unknown";
  const shown = (value: number | null) => (value === null ? "?" : String(Number(value.toFixed(1))));
  return `mean ${shown(mean)}, median ${shown(median)}, p95 ${shown(p95)}, max ${shown(max)}`;
}

function named(changes: readonly TaskChange[]): string {
  const tasks = changes.slice(0, NAMED_TASKS).map(({ task }) => task);
  const more = changes.length - tasks.length;
  return (
    [String(changes.length), ...(tasks.length === 0 ? [] : [`: ${tasks.join(", ")}`])].join("") +
    (more > 0 ? `, and ${more} more` : "")
  );
}
