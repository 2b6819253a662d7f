import { create } from "@bufbuild/protobuf";
import {
  EvaluationRecordSchema,
  GetRunStatusResponseSchema,
  GetTrainerStatusResponseSchema,
  RunPhase,
  StepRecordSchema,
} from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import type { Progress } from "../src/quickstart/progress.js";
import { describe as describeRun, LineView, type ViewFacts } from "../src/quickstart/view.js";

const facts = (progress: Partial<Progress>): ViewFacts => ({
  runId: "q1",
  steps: 16,
  elapsedMs: 192_000,
  stalenessBound: 1,
  processes: [
    { name: "nats-server", phase: "running", pid: 1, restarts: 0 },
    { name: "proxy", phase: "waiting", pid: undefined, restarts: 2 },
  ],
  progress: {
    phase: RunPhase.TRAIN,
    run: undefined,
    trainer: undefined,
    lastStep: undefined,
    evaluations: [],
    phaseStartedAt: new Map(),
    ...progress,
  },
});
const run = create(GetRunStatusResponseSchema, {
  stepForming: 7n,
  trialsClosed: 37,
  trialsNeeded: 64,
  setupFailures: 2,
  queued: 4,
  warm: 16,
  running: 12,
  verifying: 3,
});
const lastStep = create(StepRecordSchema, {
  step: 6n,
  meanReward: 0.41,
  loss: 0.0123,
  gradientNorm: 0.5,
  staleness: { max: 1, mean: 0.98 },
  consistency: { pearsonProbability: 0.999987, maxAbsDelta: 3.1e-5 },
});
const before = create(EvaluationRecordSchema, { name: "before", attempts: 256, solved: 84 });

describe("the view of a run", () => {
  test("shows services, the forming step, reward, staleness and consistency", () => {
    const text = describeRun(facts({ run, lastStep, evaluations: [before] })).join("\n");
    for (const part of [
      "run q1  3:12",
      "proxy waiting (2 restarts)",
      "training, step 7 of 16",
      "37/64 trials, 2 setup failures",
      "reward 0.410",
      "max 1, mean 0.98 (bound 1)",
      "pearson 0.999987, max |Δ log-probability| 3.1e-5",
      "before: 0.328 (84/256)",
    ])
      expect(text).toContain(part);
  });
  test("shows the progress of the warm start", () => {
    const trainer = create(GetTrainerStatusResponseSchema, {
      warmStartStep: 12,
      warmStartSteps: 170,
      loss: 1.5,
    });
    const text = describeRun(facts({ phase: RunPhase.WARM_START, trainer })).join("\n");
    expect(text).toContain("step 12/170, loss 1.500");
    expect(text).not.toContain("trials");
  });
  test("says undefined where a number is missing (C10)", () => {
    const text = describeRun(
      facts({ lastStep: create(StepRecordSchema, { step: 1n, consistency: {} }) }),
    ).join("\n");
    expect(text).toContain("reward undefined");
    expect(text).toContain("max |Δ log-probability| undefined");
  });
  test("as plain lines tells each event once", () => {
    const lines: string[] = [];
    const view = new LineView((line) => lines.push(line));
    for (let second = 0; second < 3; second++) view.update(facts({ lastStep, evaluations: [before] }));
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe("3:12  solve rate before 0.328 (84/256)");
  });
});
