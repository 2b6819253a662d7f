/**
 * Owns comparing what a log tells with what the channel told about the same session. Both are read by one parser, so
 * that names of a data set mean the same in both. Does not know how the log came about.
 */
import type { Grade, GradingRecord } from "@mortise/grading";
import type { Noticed, RanStep } from "../run/run-record.js";
import type { ChannelReport } from "./channel.js";
import { gradeReport } from "./reading.js";
import type { Runner } from "./runner.js";

/** Exit statuses of a session: all passed, some failed. Of others nothing follows for single tests. */
const [ALL_PASSED, SOME_FAILED] = [0, 1];

export interface Agreement {
  readonly tamper?: { readonly reason: string; readonly conclusive: boolean };
  /** Why it is not resolved, whatever the log says. */
  readonly refusal?: string;
  /** The runner did not say that it started, and the log shows no pass. */
  readonly isSilent: boolean;
  /** The session reported its end and no record is missing. */
  readonly isWhole: boolean;
  readonly findings: readonly Noticed[];
}

/** What a session said of itself, and what is compared with it. */
export interface Compared {
  readonly record: GradingRecord;
  readonly runner: Runner;
  readonly log: Grade;
  readonly channel: ChannelReport;
  readonly step: RanStep;
}

export function agreementOf(compared: Compared): Agreement {
  const { record, runner, channel, step } = compared;
  const told = gradeReport(record, runner, channel).grade;
  const findings = noticed(runner, channel, step);
  const isWhole = channel.finish !== undefined && !channel.hasGap;
  const base = { findings, isWhole, isSilent: !channel.hasStarted };
  const tamper = forged(channel) ?? tamperOf(compared, told);
  if (tamper !== undefined)
    return { ...base, tamper, findings: [...findings, { subject: tamper.subject, detail: tamper.reason }] };
  const refusal = channel.hasStarted ? refusalOf(runner, channel, told, step) : undefined;
  return { ...base, ...(refusal === undefined ? {} : { refusal }) };
}

export interface Tamper {
  readonly subject: string;
  readonly reason: string;
  readonly conclusive: boolean;
}

/** What no honest session reports, whatever its tests are. */
export function forged({ foreign, canaries }: ChannelReport): Tamper | undefined {
  const [first] = foreign;
  if (first !== undefined)
    return tamper("forged-result", `a record without the run's nonce is on the channel: ${first}`, true);
  if (canaries.fail === "passed")
    return tamper("canary-flipped", "a test that must fail is reported passed", true);
  return undefined;
}

function tamper(subject: string, reason: string, conclusive: boolean): Tamper {
  return { subject, reason, conclusive };
}

function tamperOf({ record, channel, log, step }: Compared, told: Grade): Tamper | undefined {
  const logged = [...log.failToPass.passed, ...log.passToPass.passed];
  const confirmed = new Set([...told.failToPass.passed, ...told.passToPass.passed]);
  const only = logged.find((name) => !confirmed.has(name));
  if (only !== undefined)
    return tamper("log-disagrees", `${only} is passed in the log and not on the channel`, false);
  const expected = new Set([...record.failToPass, ...record.passToPass]);
  const mended = channel.mended.find((nodeid) => expected.has(nodeid));
  if (mended !== undefined)
    return tamper("outcome-changed", `${mended} raised an error and is reported passed`, false);
  if (channel.hasGap && !step.outputTruncated)
    return tamper("record-missing", "records of the channel are missing", false);
  const { finish } = channel;
  const hasFailure = channel.results.some(({ outcome }) => outcome === "failed" || outcome === "error");
  if (finish?.exitStatus === ALL_PASSED && hasFailure && !isAgain(channel))
    return tamper("exit-status", "tests failed and the session says that none did", false);
  return undefined;
}

/** What keeps a run from being resolved that a log alone would not show. */
function refusalOf(runner: Runner, channel: ChannelReport, told: Grade, step: RanStep): string | undefined {
  const { finish, results } = channel;
  if (finish === undefined) return "the test session did not report its end";
  if (step.outputTruncated && channel.hasGap) return "the channel was cut at sandbox.outputBytes";
  if (finish.exitStatus > SOME_FAILED) return `${runner.name} ended with exit status ${finish.exitStatus}`;
  const ids = new Set(results.map(({ nodeid }) => nodeid));
  if (finish.exitStatus === ALL_PASSED && finish.collected !== undefined && ids.size < finish.collected)
    return `${finish.collected} tests were selected and ${ids.size} have a result`;
  return told.verdict === "resolved" ? undefined : told.reasons.join("; ");
}

function noticed(
  { name, hasCanaries }: Runner,
  { canaries, hasStarted, finish }: ChannelReport,
  step: RanStep,
): Noticed[] {
  if (!hasStarted) return [];
  const found: Noticed[] = [];
  if (hasCanaries && canaries.fail === undefined)
    found.push({ subject: "canary-absent", detail: "no canary ran" });
  else if (hasCanaries && canaries.pass !== "passed")
    found.push({ subject: "canary-refused", detail: `a test that must pass is ${canaries.pass}` });
  if (finish !== undefined && finish.exitStatus !== step.exitCode)
    found.push({
      subject: "exit-code",
      detail: `${name} ended with ${finish.exitStatus}, its command with ${step.signal || step.exitCode}`,
    });
  return found;
}

function isAgain({ results }: ChannelReport): boolean {
  return results.some(({ outcome }) => outcome === "rerun");
}
