/**
 * Owns the rules from what a log shows to a verdict (DESIGN §7: fail closed). Pure; reads no log itself.
 *
 * R1  FAIL_TO_PASS: passed and expected failures pass. Failed, error, skipped and missing do not.
 * R2  PASS_TO_PASS: as R1, and a skipped test is no regression.
 * R3  resolved = every test of both lists passes. A record without FAIL_TO_PASS proves nothing: invalid(task).
 * R4  Where a suite prints failures only, a test that is not named has passed, if the suite is proven to have run.
 * R5  Marks, exit codes or results that only an imitator can have printed: invalid(tamper).
 * R6  A log that ends before its end mark, or has no result and a sign of failed machinery: invalid(infra).
 * R7  The patch did not apply, the runner did not report its end, or the command failed while no test did:
 *     unresolved, whatever the lists say.
 */
import type { Markers } from "./log/markers.js";
import { parserLabel } from "./parsers/registry.js";
import type { GradingRecord } from "./record/record.js";
import type { Observations } from "./results/observations.js";
import { isFailing, isPassing, type LoggedStatus } from "./results/status.js";
import type { TestMap } from "./results/test-map.js";

export type LogVerdict = "resolved" | "unresolved" | "invalid(infra)" | "invalid(task)" | "invalid(tamper)";

export interface SplitList {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

export interface Grade {
  readonly instance: string;
  readonly verdict: LogVerdict;
  /** In the order of the record; complete whatever the verdict. */
  readonly failToPass: SplitList;
  readonly passToPass: SplitList;
  /** Name and version of the parser, so that the log can be graded again. */
  readonly parser: string;
  /** Why the verdict is what it is; empty for a plain resolved. */
  readonly reasons: readonly string[];
}

/** What was seen of one log. */
export interface LogEvidence {
  readonly markers: Markers;
  readonly before: Observations;
  readonly inside: Observations;
  readonly after: Observations;
  /** Looks for signs of failed machinery: asked only where nothing has a result. */
  readonly signs: () => readonly string[];
  /** Of suites that print failures only. */
  readonly hasSuiteRun: boolean | undefined;
}

type Ruling = Pick<Grade, "verdict" | "reasons">;

/** Judges what was seen of one log. */
export function judgeLog(record: GradingRecord, evidence: LogEvidence): Grade {
  const isUnmarked =
    evidence.markers.starts === 0 && evidence.markers.ends === 0 && mayBeUnmarked(record, evidence);
  const seen = isUnmarked ? evidence.before : evidence.inside;
  const lists = splitLists(record, seen.tests, evidence.hasSuiteRun);
  const ruling =
    taskRuling(record) ??
    tamperRuling(record, seen, evidence, isUnmarked) ??
    harnessRuling(evidence, isUnmarked) ??
    emptyRuling(record, seen, evidence, isUnmarked) ??
    resultRuling(record, seen, evidence, lists);
  return gradeOf(record, ruling, lists);
}

/** Results that did not come from a log: a runner's own report, already named. */
export function judgeResults(record: GradingRecord, tests: TestMap): Grade {
  const lists = splitLists(record, tests, undefined);
  const ruling = taskRuling(record) ?? listRuling(lists, tests);
  return gradeOf(record, ruling, lists);
}

function mayBeUnmarked(record: GradingRecord, { markers }: LogEvidence): boolean {
  return !record.needsMarks || markers.words.has("patch-applied");
}

function taskRuling(record: GradingRecord): Ruling | undefined {
  if (record.failToPass.length > 0) return undefined;
  return { verdict: "invalid(task)", reasons: ["FAIL_TO_PASS is empty: nothing would have to be fixed"] };
}

function tamperRuling(
  record: GradingRecord,
  seen: Observations,
  { markers, before }: LogEvidence,
  isUnmarked: boolean,
): Ruling | undefined {
  const reasons = [...markers.tamper, ...reasonsOf(seen, "tamper")];
  if (!isUnmarked && markers.starts > 0 && seen.tests.size === 0) {
    const early = expectedPasses(record, before.tests);
    if (early > 0)
      reasons.push(`${early} expected tests are reported passed before the test output starts, none in it`);
  }
  return reasons.length === 0 ? undefined : { verdict: "invalid(tamper)", reasons };
}

function harnessRuling({ markers }: LogEvidence, isUnmarked: boolean): Ruling | undefined {
  const { words, starts, ends } = markers;
  if (words.has("patch-failed")) return unresolved("the patch did not apply");
  for (const [word, reason] of [
    ["reset-failed", "the harness could not reset the repository"],
    ["tests-errored", "the harness could not run the tests"],
  ] as const) {
    const place = words.get(word);
    // Between the marks, what is tested may have printed it: no way to get a second try.
    if (place !== undefined) return place === "inside" && ends > 0 ? unresolved(reason) : infra(reason);
  }
  if (isUnmarked) return words.has("timed-out") ? infra("the test run reached its time limit") : undefined;
  if (starts > 0 && ends > 0) return undefined;
  if (words.has("timed-out")) return infra("the test run reached its time limit before it ended");
  if (starts > 0) return infra("the log ends before the end mark of the test output");
  return infra(
    ends > 0
      ? "the log has an end mark and no start mark"
      : "the log has no marks: the tests were not started",
  );
}

function emptyRuling(
  record: GradingRecord,
  seen: Observations,
  { signs, after, hasSuiteRun }: LogEvidence,
  isUnmarked: boolean,
): Ruling | undefined {
  if (seen.tests.size > 0 || hasSuiteRun === true) return undefined;
  const causes = [...reasonsOf(seen, "infra"), ...signs()];
  if (causes.length > 0) return { verdict: "invalid(infra)", reasons: ["no test has a result", ...causes] };
  if (isUnmarked) return infra("the log has neither marks nor results");
  if (expectedPasses(record, after.tests) > 0)
    return infra("results stand behind the end mark: the log is out of order");
  return undefined;
}

function resultRuling(
  record: GradingRecord,
  seen: Observations,
  { markers, hasSuiteRun }: LogEvidence,
  lists: Lists,
): Ruling {
  if (record.printsFailuresOnly && hasSuiteRun !== true && !seen.tests.hasFailure())
    return unresolved("nothing shows that the suite ran");
  const ruling = listRuling(lists, seen.tests);
  if (ruling.verdict !== "resolved")
    return { ...ruling, reasons: [...ruling.reasons, ...reasonsOf(seen, "infra")] };
  if (seen.isComplete === false) return unresolved("the test runner did not report its end");
  if (markers.exitCode !== undefined && markers.exitCode !== 0 && !seen.tests.hasFailure())
    return unresolved(`the test command ended with exit code ${markers.exitCode} and no failed test`);
  return ruling;
}

/** The fields in the order they are printed in. */
function gradeOf(record: GradingRecord, { verdict, reasons }: Ruling, lists: Lists): Grade {
  return { instance: record.instance, verdict, ...lists, parser: parserLabel(record.parser), reasons };
}

type Lists = Pick<Grade, "failToPass" | "passToPass">;

function listRuling({ failToPass, passToPass }: Lists, tests: TestMap): Ruling {
  const failed = [
    ["FAIL_TO_PASS", failToPass],
    ["PASS_TO_PASS", passToPass],
  ] as const;
  const reasons = failed
    .filter(([, list]) => list.failed.length > 0)
    .map(([name, list]) => {
      const [first] = list.failed as [string];
      const total = list.failed.length + list.passed.length;
      return `${list.failed.length} of ${total} ${name} did not pass, first: ${first} (${tests.find(first) ?? "missing"})`;
    });
  return { verdict: reasons.length === 0 ? "resolved" : "unresolved", reasons };
}

function splitLists(record: GradingRecord, tests: TestMap, hasSuiteRun: boolean | undefined): Lists {
  const isProven = hasSuiteRun === true || tests.hasFailure();
  const passes = (status: LoggedStatus | undefined, isKept: boolean) =>
    record.printsFailuresOnly
      ? isProven && !isFailing(status)
      : isPassing(status) || (isKept && status === "skipped");
  const split = (names: readonly string[], isKept: boolean): SplitList => {
    const list = { passed: [] as string[], failed: [] as string[] };
    for (const name of names) (passes(tests.find(name), isKept) ? list.passed : list.failed).push(name);
    return list;
  };
  return { failToPass: split(record.failToPass, false), passToPass: split(record.passToPass, true) };
}

function expectedPasses({ failToPass, passToPass }: GradingRecord, tests: TestMap): number {
  if (tests.size === 0) return 0;
  return [...failToPass, ...passToPass].filter((name) => isPassing(tests.find(name))).length;
}

function reasonsOf(seen: Observations, kind: "tamper" | "infra"): readonly string[] {
  return [...new Set(seen.findings.filter((finding) => finding.kind === kind).map(({ reason }) => reason))];
}

function unresolved(reason: string): Ruling {
  return { verdict: "unresolved", reasons: [reason] };
}

function infra(reason: string): Ruling {
  return { verdict: "invalid(infra)", reasons: [reason] };
}
