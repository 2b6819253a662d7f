/**
 * Owns the thresholds at which a training run is reported as going wrong.
 * Does not own the reaction: an alarm is a fact in the step record.
 *
 * Thresholds follow the published collapse of an otherwise healthy run (LEGO-RL, appendix C): the correlation
 * fell below 0.95 eight steps before the end, mean turns went to 1, and no group was partially solved.
 */
import { trend } from "./trend.js";

export type AlarmLevel = "warn" | "stop";

export interface Alarm {
  readonly name:
    | "consistency-correlation"
    | "kl"
    | "ess"
    | "turns-collapsed"
    | "turns-falling"
    | "no-partial-groups"
    | "infra-failures";
  readonly level: AlarmLevel;
  readonly value: number;
  readonly threshold: number;
}

/** What one step knows. Absent or null = not measured, which raises nothing (C10). */
export interface StepSignals {
  readonly pearsonProbability?: number | null;
  readonly kl1?: number | null;
  readonly essFraction?: number | null;
  /** Mean turns per trial, oldest first, this step last. */
  readonly meanTurns?: readonly number[];
  readonly groups?: readonly GroupOutcome[];
  /** Trials lost to infrastructure over trials ended, in [0, 1]. */
  readonly infraShare?: number;
}

export interface GroupOutcome {
  readonly nSolved: number;
  readonly nValid: number;
}

export const CORRELATION_WARN = 0.99;
export const CORRELATION_STOP = 0.95;
export const MEAN_TURNS_FLOOR = 1.5;
const KL_LIMIT = 0.1;
const ESS_FLOOR = 0.3;
const INFRA_SHARE_LIMIT = 0.05;
const TURNS_TREND_T = -3;
const TREND_WINDOW_STEPS = 10;

export function alarms(signals: StepSignals): Alarm[] {
  const raised = [
    correlationAlarm(signals.pearsonProbability),
    above("kl", signals.kl1 == null ? null : Math.abs(signals.kl1), KL_LIMIT),
    below("ess", signals.essFraction, ESS_FLOOR),
    turnsAlarm(signals.meanTurns?.at(-1)),
    turnsTrendAlarm(signals.meanTurns),
    partialGroupsAlarm(signals.groups),
    above("infra-failures", signals.infraShare, INFRA_SHARE_LIMIT),
  ];
  return raised.filter((alarm) => alarm !== null);
}

export function correlationAlarm(correlation: number | null | undefined): Alarm | null {
  if (correlation == null || correlation >= CORRELATION_WARN) return null;
  const isStop = correlation < CORRELATION_STOP;
  return {
    name: "consistency-correlation",
    level: isStop ? "stop" : "warn",
    value: correlation,
    threshold: isStop ? CORRELATION_STOP : CORRELATION_WARN,
  };
}

export function turnsAlarm(meanTurns: number | undefined): Alarm | null {
  if (meanTurns === undefined || meanTurns > MEAN_TURNS_FLOOR) return null;
  return { name: "turns-collapsed", level: "warn", value: meanTurns, threshold: MEAN_TURNS_FLOOR };
}

/** Groups in which some but not all valid members were solved: the only ones that teach. */
export function partialGroups(groups: readonly GroupOutcome[]): number {
  return groups.filter((group) => group.nSolved > 0 && group.nSolved < group.nValid).length;
}

/** Share of groups whose outcomes are all equal; `null` for no groups. */
export function zeroVarianceFraction(groups: readonly GroupOutcome[]): number | null {
  return groups.length === 0 ? null : 1 - partialGroups(groups) / groups.length;
}

function partialGroupsAlarm(groups: readonly GroupOutcome[] | undefined): Alarm | null {
  if (groups === undefined || groups.length === 0 || partialGroups(groups) > 0) return null;
  return { name: "no-partial-groups", level: "warn", value: 0, threshold: 1 };
}

function turnsTrendAlarm(meanTurns: readonly number[] | undefined): Alarm | null {
  if (meanTurns === undefined || meanTurns.length < TREND_WINDOW_STEPS) return null;
  const found = trend(meanTurns.slice(-TREND_WINDOW_STEPS));
  if (found === null || found.t >= TURNS_TREND_T) return null;
  return { name: "turns-falling", level: "warn", value: found.t, threshold: TURNS_TREND_T };
}

function above(name: Alarm["name"], value: number | null | undefined, threshold: number): Alarm | null {
  return value == null || value <= threshold ? null : { name, level: "warn", value, threshold };
}

function below(name: Alarm["name"], value: number | null | undefined, threshold: number): Alarm | null {
  return value == null || value >= threshold ? null : { name, level: "warn", value, threshold };
}
