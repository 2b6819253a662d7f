/**
 * Owns comparing what a log tells with what the channel told about the same session. Both are read by one parser, so
 * that names of a data set mean the same in both. Does not know how the log came about.
 */
import { type Grade, type GradingRecord, LogGrader } from "@mortise/grading";
import type { Noticed, RanStep } from "../run/run-record.js";
import { asSessionLog, type ChannelReport } from "./channel.js";

/** Exit statuses of pytest: all passed, some failed. Of others nothing follows for single tests. */
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

export function agreementOf(
  record: GradingRecord,
  log: Grade,
  channel: ChannelReport,
  step: RanStep,
): Agreement {
  const told = gradeChannel(record, channel);
  const findings = noticed(channel, step);
  const isWhole = channel.finish !== undefined && !channel.hasGap;
  const base = { findings, isWhole, isSilent: !channel.hasStarted };
  const tamper = tamperOf({ record, channel, log, told, step });
  if (tamper !== undefined)
    return { ...base, tamper, findings: [...findings, { subject: tamper.subject, detail: tamper.reason }] };
  const refusal = channel.hasStarted ? refusalOf(channel, told, step) : undefined;
  return { ...base, ...(refusal === undefined ? {} : { refusal }) };
}

type Tamper = { readonly subject: string; readonly reason: string; readonly conclusive: boolean };

interface Told {
  readonly record: GradingRecord;
  readonly channel: ChannelReport;
  readonly log: Grade;
  /** What the channel alone amounts to. */
  readonly told: Grade;
  readonly step: RanStep;
}

function tamperOf({ record, channel, log, told, step }: Told): Tamper | undefined {
  const tamper = (subject: string, reason: string, conclusive: boolean): Tamper => ({
    subject,
    reason,
    conclusive,
  });
  const [foreign] = channel.foreign;
  if (foreign !== undefined)
    return tamper("forged-result", `a record without the run's nonce is on the channel: ${foreign}`, true);
  if (channel.canaries.fail === "passed")
    return tamper("canary-flipped", "a test that must fail is reported passed", true);
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
function refusalOf(channel: ChannelReport, told: Grade, step: RanStep): string | undefined {
  const { finish, results } = channel;
  if (finish === undefined) return "the test session did not report its end";
  if (step.outputTruncated && channel.hasGap) return "the channel was cut at sandbox.outputBytes";
  if (finish.exitStatus > SOME_FAILED) return `pytest ended with exit status ${finish.exitStatus}`;
  const ids = new Set(results.map(({ nodeid }) => nodeid));
  if (finish.exitStatus === ALL_PASSED && finish.collected !== undefined && ids.size < finish.collected)
    return `${finish.collected} tests were selected and ${ids.size} have a result`;
  return told.verdict === "resolved" ? undefined : told.reasons.join("; ");
}

function noticed({ canaries, hasStarted, finish }: ChannelReport, step: RanStep): Noticed[] {
  if (!hasStarted) return [];
  const found: Noticed[] = [];
  if (canaries.fail === undefined) found.push({ subject: "canary-absent", detail: "no canary ran" });
  else if (canaries.pass !== "passed")
    found.push({ subject: "canary-refused", detail: `a test that must pass is ${canaries.pass}` });
  if (finish !== undefined && finish.exitStatus !== step.exitCode)
    found.push({
      subject: "exit-code",
      detail: `pytest ended with ${finish.exitStatus}, its command with ${step.signal || step.exitCode}`,
    });
  return found;
}

function isAgain({ results }: ChannelReport): boolean {
  return results.some(({ outcome }) => outcome === "rerun");
}

function gradeChannel(record: GradingRecord, channel: ChannelReport): Grade {
  const grader = new LogGrader(record);
  grader.write(asSessionLog(channel));
  return grader.end();
}
