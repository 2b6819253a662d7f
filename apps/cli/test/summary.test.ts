import { create } from "@bufbuild/protobuf";
import {
  EvaluationRecordSchema,
  ExclusionReason,
  GroupDisposition,
  GroupRecordSchema,
  MemberDisposition,
  SessionSealedSchema,
  StepRecordSchema,
} from "@mortise/contracts";
import { describe, expect, test } from "vitest";
import { failedGates, summarise } from "../src/quickstart/summary.js";
import type { RunRecords } from "../src/records/run-records.js";

/** Tasks a, b, …, each with two attempts, of which so many solved. */
const evaluation = (name: string, solved: readonly number[]) =>
  create(EvaluationRecordSchema, {
    name,
    attempts: solved.length * 2,
    solved: solved.reduce((sum, count) => sum + count, 0),
    tasks: solved.map((count, index) => ({ task: `t${index}`, attempts: 2, solved: count })),
  });

const seal = (trial: string, sampledTokens: bigint, isEvaluation = false) =>
  create(SessionSealedSchema, { run: "r", trial, sampledTokens, evaluation: isEvaluation });

/** One admitted group of two trials that step 1 used, one dropped group, one evaluation trial. */
function records(change: Partial<RunRecords> = {}): RunRecords {
  const member = (trial: string, sampledTokens: bigint) => ({
    trial,
    sampledTokens,
    disposition: MemberDisposition.TRAIN,
  });
  return {
    seals: [seal("g0-0", 10n), seal("g0-1", 12n), seal("g1-0", 7n), seal("before-0", 99n, true)],
    groups: [
      create(GroupRecordSchema, {
        group: "g0",
        disposition: GroupDisposition.ADMITTED,
        members: [member("g0-0", 10n), member("g0-1", 12n)],
      }),
      create(GroupRecordSchema, {
        group: "g1",
        disposition: GroupDisposition.DROPPED,
        dropReason: ExclusionReason.ZERO_VARIANCE,
        members: [member("g1-0", 7n)],
      }),
    ],
    steps: [
      create(StepRecordSchema, {
        step: 1n,
        groups: ["g0", "g1"],
        trials: [
          { trial: "g0-0", trainedTokens: 10n },
          { trial: "g0-1", trainedTokens: 12n },
        ],
        staleness: { bound: 1, max: 1 },
        consistency: { pearsonProbability: 0.9999, maxAbsDelta: 3e-5 },
        ledger: { sampled: 29n, trained: 22n },
      }),
    ],
    evaluations: new Map([
      ["before", evaluation("before", [0, 1, 0, 1])],
      ["after", evaluation("after", [2, 2, 1, 2])],
    ]),
    phases: [],
    endedTrials: 4,
    lost: [],
    endedTwice: [],
    ...change,
  };
}

const summaryOf = (input: RunRecords) =>
  summarise({
    runId: "r",
    seed: 1,
    stalenessBound: 1,
    records: input,
    overheadMsPerTrial: 250,
    services: [{ name: "proxy", restarts: 0 }],
    durationMs: 1000,
  });
const gatesOf = (input: RunRecords, steps = 1) => failedGates(summaryOf(input), input, steps);

describe("the summary of a run", () => {
  test("has exactly the promised keys", () => {
    const summary = summaryOf(records());
    expect(summary).toEqual({
      runId: "r",
      steps: 1,
      seed: 1,
      trials: 4,
      solveRate: { before: 0.25, after: 0.875, riseCi95: expect.anything() },
      tokens: { sampled: 29, trained: 22, baselineOnly: 0, excluded: 7, unconsumed: 0 },
      staleness: { bound: 1, max: 1 },
      consistency: { pearson: 0.9999, maxAbsDeltaLogp: 3e-5 },
      overheadMsPerTrial: 250,
      services: [{ name: "proxy", restarts: 0 }],
      durationMs: 1000,
    });
    // Differences per task 1, ½, ½, ½: mean 0.625, standard deviation 0.25, over four tasks.
    const [low, high] = summary.solveRate.riseCi95!;
    expect(low).toBeCloseTo(0.625 - 1.96 * 0.125, 3);
    expect(high).toBeCloseTo(0.625 + 1.96 * 0.125, 3);
  });
  test("says null for what is undefined, never 0 (C10)", () => {
    const summary = summaryOf(records({ steps: [], groups: [], seals: [], evaluations: new Map() }));
    expect(summary.solveRate).toEqual({ before: null, after: null, riseCi95: null });
    expect(summary.staleness.max).toBeNull();
    expect(summary.consistency).toEqual({ pearson: null, maxAbsDeltaLogp: null });
  });
  test("does not pair a task that has no attempt on one side", () => {
    const lame = create(EvaluationRecordSchema, {
      name: "after",
      attempts: 2,
      solved: 2,
      tasks: [{ task: "t0", attempts: 2, solved: 2 }],
    });
    const input = records({
      evaluations: new Map([
        ["before", evaluation("before", [0, 1])],
        ["after", lame],
      ]),
    });
    expect(summaryOf(input).solveRate.riseCi95).toBeNull();
  });
  test("refuses records that do not balance", () => {
    const lost = records({ seals: [seal("g0-0", 11n), seal("g0-1", 12n), seal("g1-0", 7n)] });
    expect(() => summaryOf(lost)).toThrow(expect.objectContaining({ code: "MORTISE_CAPTURE_LEDGER" }));
  });
});

describe("the gates of a run", () => {
  const step = (change: object) => [create(StepRecordSchema, { ...records().steps[0]!, ...change })];

  test("all hold for a sound run", () => expect(gatesOf(records())).toEqual([]));
  test.for([
    ["a missing step", records(), 2, "1 of 2 steps"],
    ["a trial that ended twice", records({ endedTwice: ["g0-0"] }), 1, "g0-0"],
    [
      "staleness past the bound",
      records({ steps: step({ staleness: { bound: 1, max: 2 } }) }),
      1,
      "staleness reached 2",
    ],
    [
      "a ledger the trainer counts otherwise",
      records({ steps: step({ ledger: { trained: 21n } }) }),
      1,
      "21 trained tokens",
    ],
    ["a difference of exactly 0", records({ steps: step({ consistency: { maxAbsDelta: 0 } }) }), 1, "is 0"],
    ["a difference too large", records({ steps: step({ consistency: { maxAbsDelta: 0.002 } }) }), 1, "0.002"],
    [
      "nothing trained",
      records({
        seals: [seal("g1-0", 7n)],
        groups: records().groups.slice(1),
        steps: step({ trials: [], ledger: { sampled: 7n, trained: 0n }, consistency: {} }),
      }),
      1,
      "no token was trained",
    ],
    ["no difference measured", records({ steps: step({ consistency: {} }) }), 1, "null"],
  ] as const)("fail on %s", ([, input, steps, reason]) => {
    expect(gatesOf(input, steps)).toEqual([expect.stringContaining(reason)]);
  });
});
