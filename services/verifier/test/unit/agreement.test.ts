/** Rules from a log and a channel to a verdict, on made records: what only one of them says. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { judgeLogRun } from "../../src/log/log.js";
import type { LogTask } from "../../src/log/plan-log.js";
import type { RanStep, RunRecord } from "../../src/run/run-record.js";

const NONCE = "n".repeat(32);
const base = mkdtempSync(path.join(tmpdir(), "mortise-agreement-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));
mkdirSync(path.join(base, "tests"));
writeFileSync(
  path.join(base, "tests/config.json"),
  JSON.stringify({
    instance_id: "own__x-1",
    repo: "own/x",
    FAIL_TO_PASS: ["t.py::a"],
    PASS_TO_PASS: ["t.py::b"],
    log_parser: "pytest",
  }),
);
const task = {
  tests: { directory: path.join(base, "tests"), expected: { format: "log", parser: "pytest" } },
} as unknown as LogTask;

type Told = Record<string, unknown>;
const START = { start: true, pytest: "8" };
const CANARIES: Told[] = [
  { canary: "pass", outcome: "passed" },
  { canary: "fail", outcome: "failed" },
];
const result = (nodeid: string, outcome = "passed"): Told => ({ nodeid, phase: "call", outcome });
const finish = (exitstatus = 0, collected = 2): Told => ({ finish: true, exitstatus, collected });
const BOTH = [result("t.py::a"), result("t.py::b")];
const lines = (...told: Told[]) =>
  told.map((record, seq) => `${JSON.stringify({ nonce: NONCE, seq, ...record })}\n`).join("");
const log = (...results: string[]) =>
  `=== test session starts ===\n=== short test summary info ===\n${results.join("\n")}\n=== ${results.filter((line) => line.startsWith("PASSED")).length} passed in 0.1s ===\n`;
const PASSES = log("PASSED t.py::a", "PASSED t.py::b");

function stepOf(stdout: string, stderr: string, changes: Partial<RanStep> = {}): RanStep {
  return {
    name: "tests",
    exitCode: 0,
    signal: "",
    timedOut: false,
    outOfMemory: false,
    outputTruncated: false,
    wallMs: 1,
    stdout: Buffer.from(stdout),
    stderr: Buffer.from(stderr),
    files: [],
    ...changes,
  };
}

function judged(
  stdout: string,
  stderr: string,
  changes: Partial<RanStep> = {},
  run: Partial<RunRecord> = {},
) {
  const step = stepOf(stdout, stderr, changes);
  const record: RunRecord = {
    task: { id: "x", digest: "d" },
    kind: "log",
    nonce: NONCE,
    hasChannel: true,
    hasChange: true,
    steps: [step],
    stripped: [],
    diffs: [],
    ...run,
  };
  const { outcome, reason, conclusive, findings } = judgeLogRun(task, record);
  return { outcome, reason, conclusive, subjects: findings.map(({ subject }) => subject) };
}

test("both say that all passed: resolved", () => {
  expect(judged(PASSES, lines(START, ...CANARIES, ...BOTH, finish()))).toMatchObject({
    outcome: "resolved",
    subjects: ["counter-absent"],
  });
});

test("noise of the shell before the session is no forgery, anything behind its start is", () => {
  const told = lines(START, ...CANARIES, ...BOTH, finish());
  expect(judged(PASSES, `bash: warning: setlocale\n${told}`).outcome).toBe("resolved");
  expect(judged(PASSES, `${told}noise\n`)).toMatchObject({ outcome: "invalid-tamper", conclusive: true });
});

test("a record with another nonce is conclusive, wherever it stands", () => {
  const forged = `${JSON.stringify({ nonce: "x", seq: 0, ...result("t.py::a") })}\n`;
  const told = lines(START, ...CANARIES, ...BOTH, finish());
  for (const stderr of [forged + told, told + forged])
    expect(judged(PASSES, stderr)).toMatchObject({
      outcome: "invalid-tamper",
      conclusive: true,
      subjects: ["forged-result"],
    });
});

test("a canary that must fail and is passed is conclusive, even where the tests failed", () => {
  const told = lines(
    START,
    { canary: "pass", outcome: "passed" },
    { canary: "fail", outcome: "passed" },
    ...BOTH,
    finish(),
  );
  expect(judged(PASSES, told)).toMatchObject({ outcome: "invalid-tamper", conclusive: true });
});

test("without canaries the run counts, and it is said", () => {
  expect(judged(PASSES, lines(START, ...BOTH, finish()))).toMatchObject({
    outcome: "resolved",
    subjects: ["canary-absent", "counter-absent"],
  });
});

test("a pass only the log tells is tampering, one only the channel tells is none", () => {
  const told = lines(START, ...CANARIES, result("t.py::a", "failed"), result("t.py::b"), finish(1));
  expect(judged(PASSES, told, { exitCode: 1 })).toMatchObject({
    outcome: "invalid-tamper",
    conclusive: false,
    subjects: ["log-disagrees"],
  });
  const all = lines(START, ...CANARIES, ...BOTH, finish());
  expect(judged(log("PASSED t.py::b"), all).outcome).toBe("unresolved");
});

test("a session without its end, with too few results or a missing record is not resolved", () => {
  expect(judged(PASSES, lines(START, ...CANARIES, ...BOTH)).outcome).toBe("unresolved");
  expect(judged(PASSES, lines(START, ...CANARIES, ...BOTH, finish(0, 3)))).toMatchObject({
    outcome: "unresolved",
    reason: expect.stringContaining("3 tests were selected and 2 have a result"),
  });
  const gap = lines(START, ...CANARIES, ...BOTH, finish()).replace(/^.*"canary":"pass".*\n/m, "");
  expect(judged(PASSES, gap)).toMatchObject({
    outcome: "invalid-tamper",
    subjects: expect.arrayContaining(["record-missing"]),
  });
});

test("an error that is reported as a pass is tampering", () => {
  const mended = { ...result("t.py::a"), raised: true };
  expect(judged(PASSES, lines(START, ...CANARIES, mended, result("t.py::b"), finish()))).toMatchObject({
    outcome: "invalid-tamper",
    subjects: ["outcome-changed"],
  });
});

test("failures under an exit status of success are tampering, unless the tests ran again", () => {
  const failed = [result("t.py::c", "failed"), ...BOTH];
  expect(judged(PASSES, lines(START, ...CANARIES, ...failed, finish(0, 3))).outcome).toBe("invalid-tamper");
  const again = [result("t.py::a", "rerun"), ...BOTH];
  const text = `plugins: rerunfailures-14\n${PASSES}`;
  expect(judged(text, lines(START, ...CANARIES, ...again, finish())).outcome).toBe("resolved");
});

test("pytest that never started: its absence is the machine's, silence the change's", () => {
  expect(judged("bash: line 5: pytest: command not found\n", "", { exitCode: 127 }).outcome).toBe(
    "invalid-infra",
  );
  expect(judged("boom\n", "", { exitCode: 1 }).outcome).toBe("unresolved");
  expect(judged("boom\n", "", { exitCode: 1 }, { hasChange: false }).outcome).toBe("invalid-task");
});

test("time and memory limits of the tests are 0, those of the preparation are the machine's", () => {
  const told = lines(START, ...CANARIES, ...BOTH);
  expect(judged("", told, { timedOut: true })).toMatchObject({ outcome: "unresolved" });
  expect(judged("", told, { outOfMemory: true })).toMatchObject({ outcome: "unresolved" });
  expect(judged("", "", { name: "prepare", timedOut: true }).outcome).toBe("invalid-infra");
  expect(judged("No space left on device\n", "", { name: "prepare", exitCode: 1 }).outcome).toBe(
    "invalid-infra",
  );
  expect(judged(">>>>> Reset Failed\n", "", { name: "prepare", exitCode: 1 }).outcome).toBe("unresolved");
  expect(judged("", "", { name: "prepare", exitCode: 1 }, { hasChange: false }).outcome).toBe("invalid-task");
});

describe("altered tests", () => {
  const told = lines(START, ...CANARIES, ...BOTH, finish());
  const failing = log("FAILED t.py::a", "PASSED t.py::b");
  const channel = (a: string, canary = "failed", nonce = "m") =>
    [
      START,
      { canary: "pass", outcome: "passed" },
      { canary: "fail", outcome: canary },
      result("t.py::a", a),
      result("t.py::b"),
      finish(1),
    ]
      .map((record, seq) => `${JSON.stringify({ nonce, seq, ...record })}\n`)
      .join("");
  const countered = (stdout: string, stderr: string, kind: "value" | "sense" = "value", failure = "") => {
    const steps = [stepOf(stdout, stderr)];
    return judged(
      PASSES,
      told,
      {},
      { counter: { nonce: "m", tests: [{ name: "t.py::a", kind }], steps, failure } },
    );
  };

  test("they fail: resolved", () => {
    expect(countered(failing, channel("failed"))).toMatchObject({ outcome: "resolved", subjects: [] });
  });

  test("one passes, in the log or on the channel: tampering, conclusive where a value was altered", () => {
    const caught = { outcome: "invalid-tamper", conclusive: true, subjects: ["altered-test-passed"] };
    expect(countered(PASSES, channel("failed"))).toMatchObject(caught);
    expect(countered(failing, channel("passed"))).toMatchObject(caught);
    expect(countered(PASSES, channel("passed"), "sense")).toMatchObject({ ...caught, conclusive: false });
  });

  test("a failure that is called expected, in both runs, is tampering and not conclusive", () => {
    const expected = log("XFAIL t.py::a", "PASSED t.py::b");
    const first = lines(START, ...CANARIES, result("t.py::a", "xfailed"), result("t.py::b"), finish());
    const counter = {
      nonce: "m",
      tests: [{ name: "t.py::a", kind: "value" as const }],
      steps: [stepOf(expected, channel("xfailed"))],
      failure: "",
    };
    expect(judged(expected, first, {}, { counter })).toMatchObject({
      outcome: "invalid-tamper",
      conclusive: false,
      subjects: ["altered-test-passed"],
    });
  });

  test("a canary that passes there, or a foreign nonce, is tampering as in the first run", () => {
    expect(countered(failing, channel("failed", "passed")).subjects).toEqual(["canary-flipped"]);
    expect(countered(failing, channel("failed", "failed", "other")).subjects).toEqual(["forged-result"]);
  });

  test("what cannot be confirmed is not resolved, and not 0", () => {
    expect(countered("boom\n", "").outcome).toBe("invalid-infra");
    expect(countered("", "", "value", "MORTISE_SANDBOX_LOST: gone").outcome).toBe("invalid-infra");
  });

  test("what the true tests leave unresolved stays so", () => {
    const run = { counter: { nonce: "m", tests: [], steps: [], failure: "" } };
    expect(judged(failing, channel("failed", "failed", NONCE), { exitCode: 1 }, run).outcome).toBe(
      "unresolved",
    );
  });
});

test("a diff of the tests that does not fit is the task's", () => {
  const diffs = [{ name: "tests", rung: "", failure: "hunk 1 failed" }];
  expect(judged(PASSES, "", {}, { diffs }).outcome).toBe("invalid-task");
});

test("a cut log is no zero, unless a listed test failed in it or the channel is whole", () => {
  const cut = { outputTruncated: true };
  expect(judged(log("PASSED t.py::a"), "", cut, { hasChannel: false }).outcome).toBe("invalid-infra");
  expect(judged(log("FAILED t.py::a", "PASSED t.py::b"), "", cut, { hasChannel: false }).outcome).toBe(
    "unresolved",
  );
  const told = lines(START, ...CANARIES, result("t.py::a", "failed"), result("t.py::b"), finish(1));
  expect(judged(log("PASSED t.py::b"), told, { ...cut, exitCode: 1 }).outcome).toBe("unresolved");
});

test("marks and codes the tests print are tampering: the host writes them once", () => {
  const told = lines(START, ...CANARIES, ...BOTH, finish());
  expect(judged(`${PASSES}>>>>> End Test Output\nTest Exit Code: 0\n`, told).outcome).toBe("invalid-tamper");
});
