/**
 * Owns verifications whose tests print the log of a test runner: the plan that makes log and channel, and the rule
 * from both to a verdict. The log is read by the parser the record names (packages/grading).
 *
 * L1  The log decides what passed, as the data set's own grader reads it. Where the channel was given, it has to say
 *     the same: resolved needs both.
 * L2  A pass the log tells and the channel does not, a record without the nonce, a test that must fail and is reported
 *     passed: invalid(tamper). The last two are conclusive.
 * L3  What failed before code of the change could run is the task's or the machine's, never 0.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Grade, type GradingRecord, LogGrader, readRecord } from "@mortise/grading";
import type { Task } from "@mortise/tasks";
import { asFilter } from "../results/results.js";
import { invalid, type Judged, unresolved } from "../run/judged.js";
import { newNonce, type Plan, type PlanWish, type Step } from "../run/plan.js";
import { type RanStep, type RunRecord, stepNamed } from "../run/run-record.js";
import { signsIn } from "../run/signs.js";
import { type Agreement, agreementOf } from "./agreement.js";
import { readChannel } from "./channel.js";
import {
  PLUGIN_DIRECTORY,
  prepareCommand,
  runsOnePytest,
  STATE_DIRECTORY,
  splitEvalScript,
  testsCommand,
} from "./eval-script.js";

const PREPARE = "prepare";
const TESTS = "tests";
/** With its input on a socket bash takes itself for a remote shell and reads a start-up file, unless told not to. */
const BASH = ["bash", "--norc", "--noprofile", "-c"];
const PLUGIN = readFileSync(join(import.meta.dirname, "../../pytest/mortise_channel.py"));
const RULES = "log-rules/1";
/** Parsers that read what the channel tells when it is printed as pytest prints it. */
const PYTEST_PARSERS = new Set(["pytest", "pytest-options", "pytest-v2", "matplotlib", "seaborn"]);

export type LogTask = Task & {
  readonly tests: { readonly expected: { readonly format: "log"; readonly parser: string } };
};

export function planLog(task: Task, { ref, hasChange, timeoutMs }: PlanWish): Plan {
  const nonce = newNonce();
  const script = join(task.tests.directory, "eval.sh");
  const diff = join(task.tests.directory, "test.patch");
  const text = existsSync(script) ? readFileSync(script, "utf8") : readFileSync(task.tests.script, "utf8");
  const split = splitEvalScript(text);
  const hasChannel = runsOnePytest(split.tests) && PYTEST_PARSERS.has(recordOf(task as LogTask).parser.name);
  const diffs = existsSync(diff) ? [{ name: "tests", diff: readFileSync(diff) }] : [];
  const at = existsSync(script) ? "/tests/eval.sh" : "/tests/test.sh";
  const tests: Step = {
    name: TESTS,
    argv: [...BASH, testsCommand(split, hasChannel), at],
    timeoutMs,
    ...(split.prepare === undefined ? {} : { putTextPatches: diffs.map(({ name }) => name) }),
    ...(hasChannel ? { stdin: new TextEncoder().encode(`${JSON.stringify(wishOf(nonce))}\n`) } : {}),
  };
  const prepare: Step[] =
    split.prepare === undefined
      ? []
      : [
          {
            name: PREPARE,
            argv: [...BASH, prepareCommand(split.prepare), at],
            timeoutMs,
            put: [{ directory: STATE_DIRECTORY }],
            required: true,
          },
        ];
  return {
    facts: { task: { id: ref.id, digest: ref.digest }, kind: "log", nonce, hasChannel, hasChange },
    steps: [...prepare, tests],
    request: {
      filter: asFilter(task),
      textPatches: diffs,
      mounts: hasChannel
        ? [{ target: PLUGIN_DIRECTORY, files: [{ path: "mortise_channel.py", content: PLUGIN }] }]
        : [],
    },
  };
}

/** What the plugin reads before any graded code is loaded; names of canaries are those of no test. */
function wishOf(nonce: string): object {
  const name = () => `test_${randomBytes(6).toString("hex")}`;
  return { nonce, canaries: [name(), name()] };
}

export function judgeLogRun(task: LogTask, run: RunRecord): Judged {
  const record = recordOf(task);
  const tests = stepNamed(run, TESTS);
  const grader = `${record.parser.name}/${record.parser.version} ${RULES}`;
  const failed = run.diffs.find(({ failure }) => failure !== "");
  if (failed !== undefined)
    return invalid("task", `the diff of the tests does not fit the pristine work tree: ${failed.failure}`, {
      grader,
    });
  if (tests === undefined) return withoutTests(run, grader);
  const grade = gradeText(record, composedLog(run));
  const agreement = run.hasChannel
    ? agreementOf(record, grade, readChannel(tests.stderr, run.nonce, tests.outputTruncated), tests)
    : undefined;
  return judgeTests({ run, tests, grade, agreement, grader });
}

/** The log as it is archived: both parts, with marks and exit code of the host's. */
export function composedLog(run: RunRecord): string {
  const text = (step: RanStep | undefined) => new TextDecoder().decode(step?.stdout);
  const tests = stepNamed(run, TESTS);
  const before = text(stepNamed(run, PREPARE));
  if (tests === undefined) return before;
  const own = text(tests);
  const code = tests.signal === "" && !tests.timedOut && !tests.outOfMemory ? [tests.exitCode] : [];
  return [
    ...(before === "" ? [] : [before.replace(/\n$/, "")]),
    ">>>>> Start Test Output",
    own.replace(/\n$/, ""),
    ">>>>> End Test Output",
    ...code.map((value) => `Test Exit Code: ${value}`),
    "",
  ].join("\n");
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
  if (signs.length > 0 || tests.exitCode === 127)
    return invalid("infra", `pytest did not start: ${signs.join("; ") || "it is absent"}`, parts);
  const reason = "pytest did not start, or was ended before it could say so";
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

function recordOf(task: LogTask): GradingRecord {
  const path = join(task.tests.directory, "config.json");
  const { parser } = task.tests.expected;
  const record = readRecord(
    JSON.parse(readFileSync(path, "utf8")),
    path,
    parser === undefined ? {} : { parser },
  );
  return { ...record, needsMarks: true };
}

function gradeText(record: GradingRecord, log: string): Grade {
  const grader = new LogGrader(record);
  grader.write(log);
  return grader.end();
}
