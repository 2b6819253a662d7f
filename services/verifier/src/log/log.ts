/**
 * Owns the rule from the outputs of a test runner to a verdict: log, channel, and the same tests altered. The log is
 * read by the parser the record names (packages/grading). Does not plan runs (plan-log.ts).
 *
 * L1  The log decides what passed, as the data set's own grader reads it. Where the channel was given, it has to say
 *     the same: resolved needs both.
 * L2  A pass the log tells and the channel does not, a record without the nonce, a test that must fail and is reported
 *     passed: invalid(tamper). The last two are conclusive.
 * L3  What failed before code of the change could run is the task's or the machine's, never 0.
 * L4  What would be resolved has to fail where the tests were altered (counter-run.ts).
 */
import type { Grade } from "@mortise/grading";
import { invalid, type Judged, unresolved } from "../run/judged.js";
import { type RanStep, type RunRecord, stepNamed } from "../run/run-record.js";
import { signsIn } from "../run/signs.js";
import { type Agreement, agreementOf } from "./agreement.js";
import { readChannel } from "./channel.js";
import { composedLog } from "./composed-log.js";
import { counterJudgement } from "./counter-run.js";
import { type LogTask, PREPARE, recordOf, TESTS } from "./plan-log.js";
import { readLogText } from "./reading.js";
import { runnerNamed } from "./runners/index.js";

const RULES = "log-rules/2";

export function judgeLogRun(task: LogTask, run: RunRecord): Judged {
  const record = recordOf(task);
  const tests = stepNamed(run, TESTS);
  const grader = `${record.parser.name}/${record.parser.version} ${RULES}`;
  const failed = run.diffs.find(({ name, failure }) => name === TESTS && failure !== "");
  if (failed !== undefined)
    return invalid("task", `the diff of the tests does not fit the pristine work tree: ${failed.failure}`, {
      grader,
    });
  if (tests === undefined) return withoutTests(run, grader);
  const { grade } = readLogText(record, composedLog(run));
  const agreement = run.hasChannel
    ? agreementOf({
        record,
        runner: runnerNamed(run.runner),
        log: grade,
        channel: readChannel(tests.stderr, run.nonce, tests.outputTruncated),
        step: tests,
      })
    : undefined;
  const judged = judgeTests({ run, tests, grade, agreement, grader });
  return judged.outcome === "resolved" ? counterJudgement(record, run, judged) : judged;
}

function withoutTests(run: RunRecord, grader: string): Judged {
  const prepare = stepNamed(run, PREPARE);
  if (prepare === undefined) return invalid("infra", "nothing was run", { grader });
  if (prepare.timedOut) return invalid("infra", "preparing the tests reached the time limit", { grader });
  const signs = signsIn(prepare.stdout);
  const ending = prepare.outOfMemory
    ? "without memory"
    : prepare.signal || `with exit code ${prepare.exitCode}`;
  const reason = `preparing the tests ended ${ending}${signs.length === 0 ? "" : `: ${signs.join("; ")}`}`;
  // Installing runs code of the change (setup.py): only without a change is it surely not its doing.
  if (run.hasChange)
    return signs.length > 0 ? invalid("infra", reason, { grader }) : unresolved(reason, { grader });
  return invalid(signs.length > 0 ? "infra" : "task", reason, { grader });
}

interface Facts {
  readonly run: RunRecord;
  readonly tests: RanStep;
  readonly grade: Grade;
  readonly agreement: Agreement | undefined;
  readonly grader: string;
}

function judgeTests({ run, tests, grade, agreement, grader }: Facts): Judged {
  const lists = [grade.failToPass, grade.passToPass];
  const passed = lists.flatMap((list) => list.passed);
  const all = [...passed, ...lists.flatMap((list) => list.failed)];
  const passing = new Set(passed);
  const findings = agreement?.findings ?? [];
  const parts = {
    grader,
    findings,
    tests: all.map((name) => ({
      name,
      status: passing.has(name) ? ("passed" as const) : ("failed" as const),
    })),
    components: [
      { name: "tests-passed-share", value: all.length === 0 ? 0 : passed.length / all.length },
      { name: "fail-to-pass-share", value: shareOf(grade.failToPass) },
      { name: "pass-to-pass-share", value: shareOf(grade.passToPass) },
    ],
  };
  const reason = grade.reasons.join("; ");
  if (agreement?.tamper !== undefined)
    return invalid("tamper", agreement.tamper.reason, { ...parts, conclusive: agreement.tamper.conclusive });
  if (grade.verdict === "invalid(tamper)") return invalid("tamper", reason, parts);
  if (tests.timedOut) return unresolved(`the test run reached its time limit; ${reason}`, parts);
  if (tests.outOfMemory) return unresolved(`the test run reached its memory limit; ${reason}`, parts);
  if (grade.verdict === "invalid(task)") return invalid("task", reason, parts);
  if (agreement?.isSilent === true) return silent(run, tests, parts);
  if (grade.verdict === "invalid(infra)") return invalid("infra", reason, parts);
  if (agreement?.refusal !== undefined) return unresolved(agreement.refusal, parts);
  if (grade.verdict === "unresolved") return cutOrUnresolved(tests, agreement, reason, parts);
  return {
    ...parts,
    outcome: "resolved",
    reward: 1,
    conclusive: false,
    reason: "every expected test passed",
  };
}

type Parts = Parameters<typeof invalid>[2];

/** The runner that had the channel never said a word: it was not started, or something ended it at once. */
function silent(run: RunRecord, tests: RanStep, parts: Parts): Judged {
  const signs = signsIn(tests.stdout);
  const { name } = runnerNamed(run.runner);
  if (signs.length > 0 || tests.exitCode === 127)
    return invalid("infra", `${name} did not start: ${signs.join("; ") || "it is absent"}`, parts);
  const reason = `${name} did not start, or was ended before it could say so`;
  return run.hasChange ? unresolved(reason, parts) : invalid("task", reason, parts);
}

function cutOrUnresolved(
  tests: RanStep,
  agreement: Agreement | undefined,
  reason: string,
  parts: Parts,
): Judged {
  // What is missing may have stood in what was cut; the channel is whole where it says so.
  if (tests.outputTruncated && agreement?.isWhole !== true && !/\((?:failed|error)\)/.test(reason))
    return invalid("infra", `the output was cut at sandbox.outputBytes; ${reason}`, parts);
  return unresolved(reason, parts);
}

function shareOf({ passed, failed }: Grade["failToPass"]): number {
  const total = passed.length + failed.length;
  return total === 0 ? 1 : passed.length / total;
}
