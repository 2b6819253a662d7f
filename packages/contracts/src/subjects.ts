/**
 * Owns the names of subjects: `mortise.v1.<noun>.<run>.<ids…>`. Nothing else in the project spells one.
 * Does not own which stream stores them (see topology.ts) or who may use them (see permissions.ts).
 */
import { MortiseError } from "./errors/index.js";

const TOKEN = /^[A-Za-z0-9_-]+$/;

/** Refuses an id that could not be one subject token (a dot or wildcard would change its meaning). */
export function subjectToken(name: string, value: string): string {
  if (TOKEN.test(value)) return value;
  throw new MortiseError({
    code: "MORTISE_OPERATOR_BAD_ID",
    message: `${name} is ${JSON.stringify(value)}`,
    detail: { field: name },
  });
}

function build(noun: string, ...ids: [name: string, value: string][]): string {
  return `mortise.v1.${noun}.${ids.map(([name, value]) => subjectToken(name, value)).join(".")}`;
}

/** The subject of each message. Pass "*" nowhere: filters have their own functions below. */
export const subject = {
  /** Turns and the seal of one trial: `CaptureRecord`. */
  capture: (run: string, trial: string) => build("capture", ["run", run], ["trial", trial]),
  /** `LaunchWork`. */
  launch: (run: string, trial: string) =>
    `${build("work", ["run", run])}.launch.${subjectToken("trial", trial)}`,
  /** `VerifyWork`. */
  verify: (run: string, trial: string) =>
    `${build("work", ["run", run])}.verify.${subjectToken("trial", trial)}`,
  /** `Verdict`. */
  reward: (run: string, trial: string) => build("reward", ["run", run], ["trial", trial]),
  /** `Regrade`. */
  regrade: (run: string, trial: string) => `${build("reward", ["run", run], ["trial", trial])}.regrade`,
  /** `TrialTransition`, the scheduler's log of one trial. */
  trialState: (run: string, trial: string) => `${build("trial", ["run", run], ["trial", trial])}.state`,
  /** `SandboxReport`. */
  trialSandbox: (run: string, trial: string) => `${build("trial", ["run", run], ["trial", trial])}.sandbox`,
  /** `GroupRecord`. */
  group: (run: string, group: string) => build("group", ["run", run], ["group", group]),
  /** `WeightsRecord` announcing version n. */
  weights: (run: string, version: number | bigint) =>
    build("weights", ["run", run], ["version", String(version)]),
  /** `WeightsRecord` with an engine's receipt. */
  receipt: (run: string, engine: string) =>
    `${build("weights", ["run", run])}.receipt.${subjectToken("engine", engine)}`,
  /** `MetricsRecord` with the record of step n. */
  step: (run: string, step: number | bigint) => `${build("metrics", ["run", run])}.step.${step}`,
  /** `MetricsRecord` with a finished evaluation. */
  evaluation: (run: string, name: string) =>
    `${build("metrics", ["run", run])}.evaluation.${subjectToken("name", name)}`,
  /** `MetricsRecord` with a phase change. */
  phase: (run: string) => `${build("metrics", ["run", run])}.phase`,
  /** `DeadLetter`. */
  deadLetter: (stream: string) => `mortise.v1.dlq.${subjectToken("stream", stream)}`,
} as const;

/** Filters for consumers: everything of one kind in one run. */
export const filter = {
  captures: (run: string) => `${build("capture", ["run", run])}.*`,
  rewards: (run: string) => `${build("reward", ["run", run])}.*`,
  regrades: (run: string) => `${build("reward", ["run", run])}.*.regrade`,
  trialStates: (run: string) => `${build("trial", ["run", run])}.*.state`,
  trialSandboxes: (run: string) => `${build("trial", ["run", run])}.*.sandbox`,
  groups: (run: string) => `${build("group", ["run", run])}.*`,
  weights: (run: string) => `${build("weights", ["run", run])}.>`,
  metrics: (run: string) => `${build("metrics", ["run", run])}.>`,
} as const;
