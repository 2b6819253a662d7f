/** Scores of attempts: hand-computed values, pairs counted one by one, properties. */
import type { ScoredAttempt } from "@mortise/objectives";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  averagePrecision,
  calibrationBins,
  expectedCalibrationError,
  precisionRecallCurve,
  rocAuc,
  type ScoredTask,
  scoringSummary,
  thinned,
  withinTaskAuc,
} from "../src/index.js";

const attempt = (score: number, isResolved: boolean): ScoredAttempt => ({ score, isResolved });
const arbAttempts = fc.array(
  fc.record({ score: fc.integer({ min: 0, max: 8 }).map((n) => n / 8), isResolved: fc.boolean() }),
  { minLength: 1, maxLength: 9 },
);
const arbTasks = fc
  .array(arbAttempts, { minLength: 1, maxLength: 5 })
  .map((lists) => lists.map((attempts, at): ScoredTask => ({ task: `t${at}`, attempts })));

/** Share of pairs in order, a tie as a half, each pair looked at. */
function byPairs(lists: readonly (readonly ScoredAttempt[])[]): number | null {
  const values = lists.flatMap((attempts) =>
    attempts
      .filter(({ isResolved }) => isResolved)
      .flatMap((good) =>
        attempts
          .filter(({ isResolved }) => !isResolved)
          .map((bad) => (good.score > bad.score ? 1 : good.score === bad.score ? 0.5 : 0) as number),
      ),
  );
  return values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;
}

describe("ranking", () => {
  test("by hand: of six pairs four in order and one tied", () => {
    // Resolved .9, .5, .2 against unresolved .5, .1: .9 beats both, .5 ties one and beats one, .2 beats one.
    const attempts = [
      attempt(0.9, true),
      attempt(0.5, true),
      attempt(0.2, true),
      attempt(0.5, false),
      attempt(0.1, false),
    ];
    expect(rocAuc(attempts)).toBeCloseTo(4.5 / 6, 12);
    expect(rocAuc(attempts.map((one) => ({ ...one, isResolved: !one.isResolved })))).toBeCloseTo(1.5 / 6, 12);
  });

  test("equals counting every pair; within tasks only pairs of one task count", () => {
    fc.assert(
      fc.property(arbTasks, (tasks) => {
        const lists = tasks.map(({ attempts }) => attempts);
        const all = byPairs([lists.flat()]);
        const within = byPairs(lists);
        if (all === null) expect(rocAuc(lists.flat())).toBeNull();
        else expect(rocAuc(lists.flat())).toBeCloseTo(all, 12);
        if (within === null) expect(withinTaskAuc(tasks)).toBeNull();
        else expect(withinTaskAuc(tasks)).toBeCloseTo(within, 12);
      }),
    );
  });

  test("a score that only tells tasks apart ranks nothing within them", () => {
    const tasks = [
      { task: "easy", attempts: [attempt(0.9, true), attempt(0.9, true), attempt(0.9, false)] },
      { task: "hard", attempts: [attempt(0.1, true), attempt(0.1, false), attempt(0.1, false)] },
    ];
    expect(withinTaskAuc(tasks)).toBe(0.5);
    // Of 9 pairs the 4 between tasks in order, 1 against it, 2 + 2 tied.
    expect(rocAuc(tasks.flatMap(({ attempts }) => attempts))).toBeCloseTo((4 + 4 / 2) / 9, 12);
  });
});

describe("calibration", () => {
  test("by hand: two bins", () => {
    const attempts = [attempt(0.1, false), attempt(0.3, true), attempt(0.5, true), attempt(1, true)];
    const bins = calibrationBins(attempts, 2);
    expect(bins).toEqual([
      { from: 0, to: 0.5, count: 2, meanScore: 0.2, resolvedShare: 0.5 },
      { from: 0.5, to: 1, count: 2, meanScore: 0.75, resolvedShare: 1 },
    ]);
    // ½·|.2 − .5| + ½·|.75 − 1|
    expect(expectedCalibrationError(bins)).toBeCloseTo(0.275, 12);
  });

  test("every attempt is in one bin whose bounds hold its score; the error is within [0, 1]", () => {
    fc.assert(
      fc.property(arbAttempts, fc.integer({ min: 1, max: 12 }), (attempts, count) => {
        const bins = calibrationBins(attempts, count);
        expect(bins.reduce((sum, bin) => sum + bin.count, 0)).toBe(attempts.length);
        for (const { from, to, meanScore } of bins)
          if (meanScore !== null) {
            expect(meanScore).toBeGreaterThanOrEqual(from - 1e-12);
            expect(meanScore).toBeLessThanOrEqual(to + 1e-12);
          }
        const error = expectedCalibrationError(bins)!;
        expect(error).toBeGreaterThanOrEqual(0);
        expect(error).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("what is no probability is refused, and nothing of nothing is null", () => {
    for (const score of [-0.1, 1.1, Number.NaN])
      expect(() => calibrationBins([attempt(score, true)])).toThrow(RangeError);
    expect(expectedCalibrationError(calibrationBins([]))).toBeNull();
  });
});

describe("precision and recall", () => {
  test("by hand: tied scores are one point", () => {
    const attempts = [
      attempt(0.9, true),
      attempt(0.6, true),
      attempt(0.6, false),
      attempt(0.3, false),
      attempt(0.1, true),
    ];
    const curve = precisionRecallCurve(attempts);
    expect(curve).toEqual([
      { threshold: 0.9, precision: 1, recall: 1 / 3 },
      { threshold: 0.6, precision: 2 / 3, recall: 2 / 3 },
      { threshold: 0.3, precision: 2 / 4, recall: 2 / 3 },
      { threshold: 0.1, precision: 3 / 5, recall: 1 },
    ]);
    expect(averagePrecision(curve)).toBeCloseTo(1 / 3 + 2 / 9 + 0 + 1 / 5, 12);
    expect(thinned(curve, 2)).toEqual([curve[1], curve[3]]);
  });

  test("recall never falls and ends at 1; a perfect score finds all at precision 1", () => {
    fc.assert(
      fc.property(arbAttempts, (attempts) => {
        const curve = precisionRecallCurve(attempts);
        const resolved = attempts.filter(({ isResolved }) => isResolved).length;
        if (resolved === 0) {
          expect([curve, averagePrecision(curve)]).toEqual([[], null]);
          return;
        }
        expect(curve.at(-1)).toMatchObject({ recall: 1, precision: resolved / attempts.length });
        for (const [at, { recall }] of curve.entries())
          expect(recall).toBeGreaterThanOrEqual(curve[at - 1]?.recall ?? 0);
        const perfect = attempts.map(({ isResolved }) => attempt(Number(isResolved), isResolved));
        expect(averagePrecision(precisionRecallCurve(perfect))).toBeCloseTo(1, 12);
      }),
    );
  });
});

describe("a summary", () => {
  test("by hand: two tasks of two attempts, one chosen well, one wrongly", () => {
    const tasks = [
      { task: "a", attempts: [attempt(0.8, true), attempt(0.2, false)] },
      { task: "b", attempts: [attempt(0.4, true), attempt(0.6, false)] },
      { task: "c", attempts: [attempt(0.7, true), attempt(0.1, false)] },
    ];
    const summary = scoringSummary(tasks, { seed: 1, resamples: 200 });
    expect(summary).toMatchObject({ tasks: 3, attempts: 6, resolved: 3 });
    expect(summary.scaling.map(({ n, best, oracle }) => [n, best, oracle])).toEqual([
      [1, 0.5, 0.5],
      [2, 2 / 3, 1],
    ]);
    // Gains ½, −½, ½.
    expect(summary.gain.value).toBeCloseTo(1 / 6, 12);
    // Of nine pairs .8 and .7 beat all three, .4 beats two.
    expect(summary.auc.value).toBeCloseTo(8 / 9, 12);
    expect(summary.aucWithinTasks.value).toBeCloseTo(2 / 3, 12);
    for (const { value, interval } of [summary.gain, summary.auc, summary.aucWithinTasks]) {
      expect(interval![0]).toBeLessThanOrEqual(value!);
      expect(interval![1]).toBeGreaterThanOrEqual(value!);
    }
    expect(scoringSummary(tasks, { seed: 1, resamples: 200 })).toEqual(summary);
  });

  test("an oracle's score reaches the oracle, and one value for all gains nothing", () => {
    fc.assert(
      fc.property(arbTasks, (tasks) => {
        const scored = (of: (one: ScoredAttempt) => number) =>
          tasks.map(({ task, attempts }) => ({
            task,
            attempts: attempts.map((one) => attempt(of(one), one.isResolved)),
          }));
        const settings = { seed: 1, resamples: 5 };
        for (const { best, oracle } of scoringSummary(
          scored(({ isResolved }) => Number(isResolved)),
          settings,
        ).scaling)
          expect(best).toBeCloseTo(oracle, 12);
        const even = scoringSummary(
          scored(() => 0.5),
          settings,
        );
        expect(even.gain.value).toBeCloseTo(0, 12);
        if (even.auc.value !== null) expect(even.auc.value).toBe(0.5);
      }),
    );
  });

  test("nothing is said of nothing", () => {
    expect(scoringSummary([])).toMatchObject({
      tasks: 0,
      scaling: [],
      gain: { value: null, interval: null },
      auc: { value: null, interval: null },
      calibration: { expectedError: null },
      precisionRecall: { averagePrecision: null, curve: [] },
    });
  });
});
