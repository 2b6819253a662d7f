/**
 * Owns verifications whose tests print results of our own formats, with the nonce given on standard input. The rule
 * from results to a verdict is packages/grading's.
 */
import { judge, parseReport } from "@mortise/grading";
import type { Task } from "@mortise/tasks";
import { invalid, type Judged } from "../run/judged.js";
import { newNonce, type Plan, type PlanWish } from "../run/plan.js";
import { pristineRules } from "../run/pristine.js";
import { type RunRecord, stepNamed } from "../run/run-record.js";
import { signsIn } from "../run/signs.js";

const TESTS = "tests";
/** A shell's own exit codes for a program it could not run. */
const NOT_RUN = [126, 127];

export type ResultsTask = Task & {
  readonly tests: { readonly expected: { readonly format: "json-lines" | "tap" } };
};

export function planResults(task: Task, { ref, hasChange, timeoutMs }: PlanWish): Plan {
  const nonce = newNonce();
  const { id, digest } = ref;
  return {
    facts: { task: { id, digest }, kind: "results", nonce, hasChannel: false, hasChange },
    steps: [
      {
        name: TESTS,
        argv: ["/bin/sh", "/tests/test.sh"],
        timeoutMs,
        stdin: new TextEncoder().encode(`${nonce}\n`),
      },
    ],
    request: { filter: asFilter(task) },
  };
}

export function asFilter(task: Task) {
  const { rules, keep } = pristineRules(task);
  return { rules: [...rules], keep: [...keep] };
}

export function judgeResultsRun(task: ResultsTask, run: RunRecord): Judged {
  const { format, failToPass, passToPass } = task.tests.expected;
  const step = stepNamed(run, TESTS);
  if (step === undefined) return invalid("infra", "the tests did not run", { grader: format });
  const report = parseReport(format, new TextDecoder().decode(step.stdout), run.nonce);
  const [sign] = signsIn(step.stderr, step.stdout);
  // The exit code alone is any program's to choose.
  if (sign !== undefined && NOT_RUN.includes(step.exitCode) && report.tests.length === 0)
    return invalid("infra", `the tests could not be started: ${sign}`, { grader: report.parser });
  const { tests, passedShare, outcome, reward, reason, conclusive } = judge(
    [...failToPass, ...passToPass],
    report,
    step,
  );
  return {
    outcome,
    ...(reward === undefined ? {} : { reward }),
    reason,
    conclusive,
    tests,
    components: [{ name: "tests-passed-share", value: passedShare }],
    grader: report.parser,
    findings: report.forged.slice(0, 1).map((detail) => ({ subject: "forged-result", detail })),
  };
}
