import { describe, expect, test } from "vitest";
import { attemptsBy, setReport } from "../src/index.js";
import { trialFact as trial } from "./trial-fact.js";

describe("the report of a set", () => {
  test("lost trials are counted with their reason and are in no rate", () => {
    const found = setReport("training", [
      trial({ slot: 0 }),
      trial({ slot: 1, verdict: "unresolved" }),
      trial({ slot: 2, verdict: undefined, termination: "sandbox-lost", sampledTokens: undefined }),
      trial({ slot: 2, retry: 1 }),
      trial({ slot: 3, verdict: "invalid(tamper)" }),
      trial({ group: "g1", task: "b", verdict: "invalid(infra)", termination: "verifier-failure" }),
    ]);
    expect(found.trials).toBe(6);
    expect(found.byTermination).toEqual({ completed: 4, "sandbox-lost": 1, "verifier-failure": 1 });
    expect(found.byVerdict).toEqual({
      resolved: 2,
      "invalid(infra)": 1,
      "invalid(tamper)": 1,
      none: 1,
      unresolved: 1,
    });
    expect(found.lost).toEqual({ trials: 3, retried: 1, tasks: 1 });
    expect(found.solving).toMatchObject({ tasks: 1, attempts: 3, solved: 2 });
    expect(found.solving.rate).toBeCloseTo(2 / 3, 12);
    expect(found.groups).toEqual({ allPass: 0, allFail: 0, mixed: 1 });
    expect(found.sampledTokens).toMatchObject({ count: 3, mean: 10 });
  });

  test("a task drawn twice is one task and two groups", () => {
    const found = setReport("training", [
      trial({ group: "g0" }),
      trial({ group: "g0", slot: 1 }),
      trial({ group: "g1", verdict: "unresolved" }),
      trial({ group: "g1", slot: 1, verdict: "unresolved" }),
    ]);
    expect(found.solving).toMatchObject({ tasks: 1, attempts: 4, shapes: { mixed: 1 } });
    expect(found.groups).toEqual({ allPass: 1, allFail: 1, mixed: 0 });
  });

  test("time in a stage is the sum of its visits, of trials that came there", () => {
    const { stagesMs } = setReport("training", [
      trial({
        stages: [
          { stage: "setup", wallMs: 5 },
          { stage: "agent", wallMs: 50 },
          { stage: "setup", wallMs: 3 },
        ],
      }),
      trial({ slot: 1, stages: [{ stage: "setup", wallMs: 2 }], verdict: undefined }),
    ]);
    expect(stagesMs.setup).toMatchObject({ count: 2, mean: 5, max: 8 });
    expect(stagesMs.agent).toMatchObject({ count: 1, median: 50 });
  });

  test("a curve needs a score of every counted trial", () => {
    const scored = [trial({ score: 2 }), trial({ slot: 1, verdict: "unresolved", score: 1 })];
    expect(setReport("training", scored).scaling).toEqual([
      { n: 1, best: 0.5, oracle: 0.5 },
      { n: 2, best: 1, oracle: 1 },
    ]);
    const lost = trial({ slot: 2, verdict: undefined });
    expect(setReport("training", [...scored, lost]).scaling).toHaveLength(2);
    expect(setReport("training", [...scored, trial({ slot: 2 })]).scaling).toEqual([]);
  });

  test("attempts are by task in order of name, whatever order the trials ended in", () => {
    const trials = [trial({ task: "b" }), trial({ task: "a", verdict: "unresolved" })];
    expect(attemptsBy(trials).map(({ task }) => task)).toEqual(["a", "b"]);
  });

  test("of nothing nothing is claimed", () => {
    expect(setReport("after", [])).toMatchObject({
      trials: 0,
      solving: { rate: null },
      sampledTokens: { count: 0, mean: null },
      scaling: [],
    });
  });
});
