import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { judge, parseJsonLines, parseTap, type RunEnding } from "../src/index.js";

const NONCE = "n0nce";
const clean: RunEnding = {
  exitCode: 0,
  signal: "",
  timedOut: false,
  outOfMemory: false,
  outputTruncated: false,
};
const line = (record: object, nonce = NONCE) => JSON.stringify({ nonce, ...record });
const passing = [
  line({ name: "a", status: "passed", ms: 1 }),
  line({ name: "b", status: "passed" }),
  line({ end: true, tests: 2 }),
];

describe("json-lines", () => {
  test("reads results between other output", () => {
    const report = parseJsonLines(
      ["hello", passing[0], '{"debug":1}', passing[1], "{broken", passing[2], ""].join("\n"),
      NONCE,
    );
    expect(report.tests).toEqual([
      { name: "a", status: "passed", durationMs: 1 },
      { name: "b", status: "passed" },
    ]);
    expect(report.isComplete).toBe(true);
    expect(report.forged).toEqual([]);
  });

  test("a result with another nonce is forged, and tampering is conclusive", () => {
    const report = parseJsonLines(
      [line({ name: "a", status: "passed" }, "guess"), ...passing].join("\n"),
      NONCE,
    );
    const judgement = judge(["a", "b"], report, clean);
    expect(judgement).toMatchObject({ outcome: "invalid-tamper", conclusive: true });
    expect(judgement.reward).toBeUndefined();
  });

  test("any output parses without throwing, and cannot pass without the nonce", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), fc.json(), fc.constant('{"name":"a","status":"passed"}'))),
        (lines) => {
          const report = parseJsonLines(lines.join("\n"), NONCE);
          expect(judge(["a"], report, clean).outcome).not.toBe("resolved");
        },
      ),
    );
  });
});

describe("tap", () => {
  test("takes top-level points and the plan", () => {
    const report = parseTap(
      "TAP version 13\n    ok 1 - inner\nok 1 - outer # time=3ms\nnot ok 2 - other\nok 3 - later # SKIP not here\n1..3\n",
    );
    expect(report.tests.map((t) => [t.name, t.status])).toEqual([
      ["outer # time=3ms", "passed"],
      ["other", "failed"],
      ["later", "skipped"],
    ]);
    expect(report.isComplete).toBe(true);
  });
});

describe("verdict", () => {
  const report = parseJsonLines(passing.join("\n"), NONCE);

  test("resolved needs every expected test, the end, and a clean exit", () => {
    expect(judge(["a", "b"], report, clean)).toMatchObject({
      outcome: "resolved",
      reward: 1,
      passedShare: 1,
    });
    expect(judge(["a", "b", "c"], report, clean)).toMatchObject({ outcome: "unresolved", reward: 0 });
    expect(judge(["a", "b"], report, { ...clean, exitCode: 1 })).toMatchObject({ outcome: "unresolved" });
    expect(judge(["a", "b"], parseJsonLines(passing.slice(0, 2).join("\n"), NONCE), clean).outcome).toBe(
      "unresolved",
    );
  });

  test("exit code 0 without results is unresolved", () => {
    const judgement = judge(["a"], parseJsonLines("", NONCE), clean);
    expect(judgement.outcome).toBe("unresolved");
    expect(judgement.tests).toEqual([{ name: "a", status: "missing" }]);
  });

  test("a test reported failed and then passed is failed", () => {
    const twice = [
      line({ name: "a", status: "failed" }),
      line({ name: "a", status: "passed" }),
      line({ end: true, tests: 2 }),
    ];
    expect(judge(["a"], parseJsonLines(twice.join("\n"), NONCE), clean).outcome).toBe("unresolved");
  });

  test("time and memory limits are the agent's failure, and no expected tests the task's", () => {
    expect(judge(["a", "b"], report, { ...clean, timedOut: true }).reason).toContain("time limit");
    expect(judge(["a", "b"], report, { ...clean, outOfMemory: true }).reason).toContain("memory limit");
    expect(judge([], report, clean).outcome).toBe("invalid-task");
  });
});
