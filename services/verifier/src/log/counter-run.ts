/**
 * Owns what the altered tests say of a run that would be resolved: they ran in another sandbox, under the same names, in
 * the same files, and nothing honest passes both them and the true ones. Does not alter tests (counter/).
 *
 * K1  An altered test that is passed, in the log or on the channel: invalid(tamper). Where a value was altered it is
 *     conclusive: the result would equal two values.
 * K2  No altered test that failed: the run could not be confirmed, invalid(infra).
 */
import type { GradingRecord, LoggedStatus } from "@mortise/grading";
import { invalid, type Judged } from "../run/judged.js";
import { type CounterRun, type RunRecord, stepNamed } from "../run/run-record.js";
import { forged } from "./agreement.js";
import { readChannel } from "./channel.js";
import { composedLog } from "./composed-log.js";
import { TESTS } from "./plan-log.js";
import { gradeReport, readLogText } from "./reading.js";
import { runnerNamed } from "./runners/index.js";

type StatusOf = (name: string) => LoggedStatus | undefined;

/** `judged` is what the true tests alone amount to. */
export function counterJudgement(record: GradingRecord, run: RunRecord, judged: Judged): Judged {
  const { counter } = run;
  if (counter === undefined) {
    const detail = "no test could be altered so that it has to fail";
    return { ...judged, findings: [...judged.findings, { subject: "counter-absent", detail }] };
  }
  if (counter.failure !== "") return invalid("infra", `the altered tests: ${counter.failure}`, judged);
  const step = stepNamed(counter, TESTS);
  if (step === undefined) return invalid("infra", "the altered tests could not be prepared", judged);
  const channel = run.hasChannel ? readChannel(step.stderr, counter.nonce, step.outputTruncated) : undefined;
  const tamper = channel === undefined ? undefined : forged(channel);
  if (tamper !== undefined) return tampered(judged, tamper.subject, tamper.reason, tamper.conclusive);
  const log = readLogText(record, composedLog(counter)).statusOf;
  const told =
    channel === undefined ? undefined : gradeReport(record, runnerNamed(run.runner), channel).statusOf;
  return ofResults(judged, counter, told === undefined ? [log] : [log, told]);
}

function ofResults(judged: Judged, { tests }: CounterRun, readings: readonly StatusOf[]): Judged {
  const passed = tests.find(({ name }) => readings.some((statusOf) => statusOf(name) === "passed"));
  if (passed !== undefined) {
    const reason = `${passed.name} is passed, and is passed too when it asserts something else`;
    return tampered(judged, "altered-test-passed", reason, passed.kind === "value");
  }
  const [log] = readings;
  const failed = tests.some(({ name }) => ["failed", "error"].includes(log!(name) ?? ""));
  return failed ? judged : invalid("infra", "no altered test has a result", judged);
}

function tampered(judged: Judged, subject: string, reason: string, conclusive: boolean): Judged {
  const findings = [...judged.findings, { subject, detail: reason }];
  return invalid("tamper", reason, { ...judged, findings, conclusive });
}
