/**
 * Owns the integrity report of a run: how many trials show signs of each mode, how those ended, and what protected the
 * others. Pure; the modes are in modes.ts.
 */
import { Outcome, type SandboxReport } from "@mortise/contracts";
import type { RunVerdicts } from "../regrade/run-verdicts.js";
import { OUTCOME_NAMES, outcomeCounts, standingVerdicts } from "../regrade/standing.js";
import { MODES, type Mode, type TrialSigns } from "./modes.js";

export interface ModeCount {
  readonly mode: string;
  readonly side: Mode["side"];
  readonly meaning: string;
  /** Trials with at least one sign. */
  readonly trials: number;
  /** All signs. */
  readonly signs: number;
  /** Of the trials with a verdict, or of all for what keeps an agent from starting; in [0, 1]; null without any. */
  readonly incidence: number | null;
  /** How many of the trials have each outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Trials that are resolved though they show signs: to be looked at. */
  readonly resolved: readonly string[];
  readonly examples: readonly {
    readonly trial: string;
    readonly task: string | null;
    readonly sign: string;
  }[];
}

export interface IntegrityReport {
  readonly runId: string;
  readonly trials: number;
  readonly verdicts: Readonly<Record<string, number>>;
  readonly tampered: readonly {
    readonly trial: string;
    readonly task: string | null;
    readonly reason: string;
    readonly isConclusive: boolean;
  }[];
  /** Sandboxes that were sealed, and whose network was probed, before the agent ran. */
  readonly protection: {
    readonly ran: number;
    readonly sealed: number;
    readonly probed: number;
    readonly withEvidence: number;
  };
  readonly modes: readonly ModeCount[];
}

const MAX_EXAMPLES = 3;

export function integrityOf(run: RunVerdicts): IntegrityReport {
  const standing = standingVerdicts(run);
  const names = [...new Set([...run.trials.keys(), ...run.reports.keys(), ...standing.keys()])];
  const taskOf = (trial: string) => run.trials.get(trial)?.task?.id ?? null;
  const trials = names.map((trial) => {
    const verdict = run.verdicts.get(trial)?.message;
    // What was stripped stands in the verdict only; what was judged later says the rest.
    const judged = standing.get(trial);
    const now =
      judged === undefined || verdict === undefined ? judged : { ...judged, stripped: verdict.stripped };
    return { trial, signs: { verdict: now, report: run.reports.get(trial) } };
  });
  const reports = [...run.reports.values()];
  const ran = reports.filter(({ fact }) => fact.case === "ended");
  return {
    runId: run.run,
    trials: names.length,
    verdicts: outcomeCounts(standing.values()),
    tampered: trials
      .filter(({ signs }) => signs.verdict?.outcome === Outcome.INVALID_TAMPER)
      .map(({ trial, signs }) => ({
        trial,
        task: taskOf(trial),
        reason: signs.verdict!.reason,
        isConclusive: signs.verdict!.conclusive,
      })),
    protection: {
      ran: ran.length,
      sealed: ran.filter(hasSeal).length,
      probed: ran.filter(hasProbe).length,
      withEvidence: [...run.verdicts.values()].filter(({ message }) => message.evidence !== undefined).length,
    },
    modes: MODES.map((mode) => countOf(mode, trials, taskOf)),
  };
}

function countOf(
  { name, side, meaning, signs: signsOf }: Mode,
  trials: readonly { readonly trial: string; readonly signs: TrialSigns }[],
  taskOf: (trial: string) => string | null,
): ModeCount {
  const hit = trials
    .map((one) => ({ ...one, found: signsOf(one.signs) }))
    .filter(({ found }) => found.length > 0);
  const verdicts = hit.flatMap(({ signs }) => signs.verdict ?? []);
  const base = side === "agent" ? trials.filter(({ signs }) => signs.verdict !== undefined) : trials;
  return {
    mode: name,
    side,
    meaning,
    trials: hit.length,
    signs: hit.reduce((sum, { found }) => sum + found.length, 0),
    incidence: base.length === 0 ? null : hit.length / base.length,
    outcomes: outcomeCounts(verdicts),
    resolved: hit
      .filter(({ signs }) => signs.verdict?.outcome === Outcome.RESOLVED)
      .map(({ trial }) => trial),
    examples: hit
      .slice(0, MAX_EXAMPLES)
      .map(({ trial, found }) => ({ trial, task: taskOf(trial), sign: found[0]! })),
  };
}

function hasSeal({ proof }: SandboxReport): boolean {
  return proof?.seal !== undefined;
}

function hasProbe({ proof }: SandboxReport): boolean {
  return proof?.network !== undefined;
}

/** The report as a table and what is to be looked at. */
export function integrityLines(report: IntegrityReport): string[] {
  const { protection, tampered, modes } = report;
  const rows = modes.map(({ mode, side, trials, signs, incidence, outcomes }) => [
    mode,
    side,
    String(trials),
    String(signs),
    incidence === null ? "" : `${(incidence * 100).toFixed(1)} %`,
    Object.entries(outcomes)
      .map(([name, count]) => `${count} ${name}`)
      .join(", "),
  ]);
  const looked = modes.flatMap(({ mode, resolved }) =>
    resolved.map((trial) => `look at ${trial}: resolved, with signs of ${mode}`),
  );
  return [
    `run ${report.runId}: ${report.trials} trials; ${Object.entries(report.verdicts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ")}`,
    `agents ran in ${protection.ran} sandboxes: ${protection.sealed} sealed, ${protection.probed} with a probed network; ${protection.withEvidence} verdicts can be judged again`,
    ...table(["mode", "side", "trials", "signs", "incidence", "ended"], rows),
    ...tampered.map(
      ({ trial, task, reason, isConclusive }) =>
        `${OUTCOME_NAMES[Outcome.INVALID_TAMPER]}${isConclusive ? ", conclusive" : ""}: ${trial} (${task}): ${reason}`,
    ),
    ...looked,
  ];
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all.map((row) =>
    row
      .map((cell, column) =>
        column >= 2 && column <= 4 ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join("  ")
      .trimEnd(),
  );
}
