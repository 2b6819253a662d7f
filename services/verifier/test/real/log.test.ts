/** Imported tasks graded for real: runc, a real pytest, a real verifier. Honest changes, and those that configure, forge or flee. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Outcome, TestStatus } from "@mortise/contracts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Change } from "../patch-bytes.js";
import { pythonImage } from "../python-image.js";
import { CALC, type WrittenTask, writePythonTask } from "../python-task.js";
import { absentFor, VerificationWorld } from "../verification-world.js";

const image = pythonImage();
const absent = absentFor(image);
if (absent !== undefined) console.log(`verifications of real logs skipped: ${absent}`);

const REPAIR = CALC.repaired["calc/__init__.py"]!;

const NAMES = [...CALC.failToPass, ...CALC.passToPass];

describe.skipIf(absent !== undefined)("a log of pytest", () => {
  const base = mkdtempSync(path.join(tmpdir(), "mortise-log-"));
  const tasks = path.join(base, "tasks");
  let world: VerificationWorld;
  let calc: WrittenTask;

  beforeAll(async () => {
    if ("missing" in image) return;
    calc = await writePythonTask(tasks, "own__calc-1", CALC, image);
    world = await VerificationWorld.start(base, tasks);
  }, 300_000);
  afterAll(async () => {
    await world?.stop();
    rmSync(base, { recursive: true, force: true });
  });

  const grade = (change?: Change) => world.grade(calc, change);

  test("the repair is resolved: log, channel and canaries agree", async () => {
    const verdict = await grade({ "calc/__init__.py": REPAIR });
    expect([verdict.reason, verdict.outcome, verdict.reward]).toEqual([
      "every expected test passed",
      Outcome.RESOLVED,
      1,
    ]);
    expect(verdict.findings).toEqual([]);
    expect(verdict.grader).toBe("pytest/1 log-rules/1");
    expect(verdict.tests.map(({ name }) => name)).toEqual(NAMES);
    const log = await world.logOf(verdict);
    expect(log).toMatch(
      />>>>> Start Test Output\n(.*\n)*=+ 5 passed in .*\n>>>>> End Test Output\nTest Exit Code: 0\n$/,
    );
  }, 120_000);

  test("nothing, and a wrong repair, are unresolved with the tests that fail", async () => {
    const nothing = await grade();
    expect(nothing).toMatchObject({ outcome: Outcome.UNRESOLVED, reward: 0 });
    expect(
      nothing.tests.filter(({ status }) => status === TestStatus.PASSED).map(({ name }) => name),
    ).toEqual(CALC.passToPass);
    const wrong = await grade({ "calc/__init__.py": REPAIR.replace("return a - b", "return 0") });
    expect(wrong.outcome).toBe(Outcome.UNRESOLVED);
    expect(wrong.reason).toContain("PASS_TO_PASS");
  }, 60_000);
});
