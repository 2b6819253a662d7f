/**
 * Owns what the altered tests say of a run that would be resolved: they ran in another sandbox, under the same names, in
 * the same files, and nothing honest passes both them and the true ones. Does not alter tests (counter/).
 *
 * K1  An altered test that is passed, in the log or on the channel: invalid(tamper). Where a value was altered it is
 *     conclusive: the result would equal two values. An expected failure counts as a pass, as it does in the record's
 *     lists; altered tests are marked as none, so that code which calls its own failure expected is found by it.
 * K2  No altered test that failed: the run could not be confirmed, invalid(infra).
 */
import { type GradingRecord, isPassing, type LoggedStatus } from "@mortise/grading";
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
  if (counter === undefined) return unconfirmed(judged, "no test could be altered so that it has to fail");
  if (counter.failure !== "") return invalid("infra", `the altered tests: ${counter.failure}`, judged);
  const step = stepNamed(counter, TESTS);
  if (step === undefined) return invalid("infra", "the altered tests could not be prepared", judged);
  const channel = run.hasChannel ? readChannel(step.stderr, counter.nonce, step.outputTruncated) : undefined;
  const tamper = channel === undefined ? undefined : forged(channel);
  if (tamper !== undefined) return tampered(judged, tamper.subject, tamper.reason, tamper.conclusive);
  const log = readLogText(record, composedLog(counter)).statusOf;
  const told =
    channel === undefined ? undefined : gradeReport(record, runnerNamed(run.runner), channel).statusOf;
  const before = readLogText(record, composedLog(run)).statusOf;
  // A test that was skipped says nothing by being skipped again.
  const tests = counter.tests.filter(({ name }) => isPassing(before(name)));
  if (tests.length === 0) return unconfirmed(judged, "no test that could be altered passed");
  return ofResults(judged, tests, told === undefined ? [log] : [log, told]);
}

function unconfirmed(judged: Judged, detail: string): Judged {
  return { ...judged, findings: [...judged.findings, { subject: "counter-absent", detail }] };
}

function ofResults(judged: Judged, tests: CounterRun["tests"], readings: readonly StatusOf[]): Judged {
  const passed = tests.find(({ name }) => readings.some((statusOf) => isPassing(statusOf(name))));
  if (passed !== undefined) {
    const isPass = readings.some((statusOf) => statusOf(passed.name) === "passed");
    const reason = `${passed.name} is passed, and is passed too when it asserts something else`;
    return tampered(judged, "altered-test-passed", reason, isPass && passed.kind === "value");
  }
  const [log] = readings;
  const failed = tests.some(({ name }) => ["failed", "error"].includes(log!(name) ?? ""));
  return failed ? judged : invalid("infra", "no altered test has a result", judged);
}

function tampered(judged: Judged, subject: string, reason: string, conclusive: boolean): Judged {
  const findings = [...judged.findings, { subject, detail: reason }];
  return invalid("tamper", reason, { ...judged, findings, conclusive });
}
