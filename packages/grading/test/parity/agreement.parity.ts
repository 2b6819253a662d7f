/**
 * Ours and the official graders on synthetic logs: every disagreement has a named rule. Needs Python with the
 * swebench package; says so where it is absent. MORTISE_PARITY_CASES and MORTISE_PARITY_SEED change the cases.
 */
import { describe, expect, test } from "vitest";
import { type Grade, gradeLog, readRecord } from "../../src/index.js";
import { explanationOf } from "./explanations.js";
import { syntheticCase } from "./generator.js";
import {
  gradeOfficially,
  hasSwebench,
  interpreters,
  type OfficialGrades,
  type OfficialReport,
} from "./official.js";
import type { SyntheticCase } from "./synthetic-case.js";

const count = Number(process.env.MORTISE_PARITY_CASES ?? 2_400);
const seed = Number(process.env.MORTISE_PARITY_SEED ?? 1);

function ours(one: SyntheticCase): Grade {
  const { id, repo, version, failToPass, passToPass } = one;
  const record = { instance_id: id, repo, version, FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass };
  return gradeLog(readRecord(record, one.id), one.log);
}

/** Where the official grader found no results its report has no lists: the verdict is compared alone. */
function agrees(grade: Grade, report: OfficialReport): boolean {
  if (report.error !== undefined || grade.verdict !== (report.resolved ? "resolved" : "unresolved"))
    return false;
  const lists = [grade.failToPass, grade.passToPass].map(({ passed, failed }) => ({
    success: passed,
    failure: failed,
  }));
  return (
    !report.found || JSON.stringify(lists) === JSON.stringify([report.FAIL_TO_PASS, report.PASS_TO_PASS])
  );
}

/** How often each rule explains a disagreement, and the cases that none explains. */
function compare(cases: readonly SyntheticCase[], { version, reports }: OfficialGrades) {
  const tally = new Map<string, number>();
  const unexplained: object[] = [];
  cases.forEach((one, at) => {
    const report = reports[at]!;
    const grade = ours(one);
    const rule = agrees(grade, report) ? "agree" : explanationOf(one, grade, { report, version });
    if (rule === undefined)
      unexplained.push({ at, traits: [...one.traits], repo: one.repo, grade, report, log: one.log });
    else tally.set(rule, (tally.get(rule) ?? 0) + 1);
  });
  return { tally: Object.fromEntries([...tally].sort(([, a], [, b]) => b - a)), unexplained };
}

for (const python of interpreters()) {
  const isPresent = hasSwebench(python);
  describe.skipIf(!isPresent)(`swebench of ${python}`, () => {
    test(`${count} synthetic logs, seed ${seed}`, () => {
      const cases = Array.from({ length: count }, (_, ordinal) => syntheticCase(seed, ordinal));
      const official = gradeOfficially(python, cases);
      expect(official.reports).toHaveLength(count);
      const { tally, unexplained } = compare(cases, official);
      console.log(
        `swebench ${official.version}: ${JSON.stringify(tally)}, unexplained ${unexplained.length}`,
      );
      expect(unexplained.slice(0, 5)).toEqual([]);
    });
  });
}
