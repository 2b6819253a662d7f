/** Statistics against enumeration of all subsets, hand values, and properties. */
import { mean } from "@mortise/objectives";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  attemptCounts,
  bootstrapInterval,
  compareTasks,
  fewestAttempts,
  groupShapes,
  mixedAtK,
  scalingCurve,
  solveRate,
  solveSummary,
  type TaskAttempts,
} from "../src/index.js";

const task = (name: string, marks: string): TaskAttempts => ({
  task: name,
  outcomes: [...marks].map((mark) => mark === "+"),
});

/** Every k-subset of the indices below n. */
function subsets(n: number, k: number, from = 0): number[][] {
  if (k === 0) return [[]];
  const found: number[][] = [];
  for (let first = from; first <= n - k; first++)
    for (const rest of subsets(n, k - 1, first + 1)) found.push([first, ...rest]);
  return found;
}

/** Share of the k-subsets of a task's attempts for which the claim holds. */
function shareOf({ outcomes }: TaskAttempts, k: number, claim: (drawn: boolean[]) => boolean): number {
  const all = subsets(outcomes.length, k);
  return all.filter((indices) => claim(indices.map((at) => outcomes[at]!))).length / all.length;
}

const arbTask = fc.array(fc.boolean(), { minLength: 1, maxLength: 7 });
const arbTasks = fc
  .array(arbTask, { minLength: 1, maxLength: 5 })
  .map((lists) => lists.map((outcomes, at): TaskAttempts => ({ task: `t${at}`, outcomes })));

describe("one set of attempts", () => {
  test("by hand: three tasks of four attempts", () => {
    const tasks = [task("a", "++++"), task("b", "+---"), task("c", "----")];
    const summary = solveSummary(tasks);
    expect(summary).toMatchObject({ tasks: 3, attempts: 12, solved: 5 });
    expect(summary.rate).toBeCloseTo(5 / 12, 12);
    expect(summary.shapes).toEqual({ allPass: 1, allFail: 1, mixed: 1 });
    expect(summary.at.map(({ k }) => k)).toEqual([1, 2, 4]);
    // Of b's six pairs three hold the success: pass@2 = (1 + 1/2 + 0)/3, pass^2 = (1 + 0 + 0)/3.
    expect(summary.at[1]!.pass).toBeCloseTo(0.5, 12);
    expect(summary.at[1]!.passHat).toBeCloseTo(1 / 3, 12);
    expect(summary.at[1]!.mixed).toBeCloseTo(1 / 6, 12);
    // Wilson 95 % of 5 of 12, z = 1.959964.
    expect(summary.attemptInterval![0]).toBeCloseTo(0.19326, 4);
    expect(summary.attemptInterval![1]).toBeCloseTo(0.68049, 4);
  });

  test("k attempts are worth what enumerating all subsets says", () => {
    fc.assert(
      fc.property(arbTasks, (tasks) => {
        for (const { k, pass, passHat, mixed } of solveSummary(tasks, { seed: 1, resamples: 10 }).at) {
          const over = (claim: (drawn: boolean[]) => boolean) =>
            mean(tasks.map((one) => shareOf(one, k, claim)))!;
          expect(pass).toBeCloseTo(
            over((drawn) => drawn.some(Boolean)),
            10,
          );
          expect(passHat).toBeCloseTo(
            over((drawn) => drawn.every(Boolean)),
            10,
          );
          expect(mixed).toBeCloseTo(
            over((drawn) => drawn.some(Boolean) && !drawn.every(Boolean)),
            10,
          );
        }
      }),
    );
  });

  test("at k = 1 all is the solve rate, and what all tasks have bounds k", () => {
    fc.assert(
      fc.property(arbTasks, (tasks) => {
        const { rate, at, shapes, tasks: n } = solveSummary(tasks, { seed: 1, resamples: 10 });
        expect(at[0]!.pass).toBeCloseTo(rate!, 10);
        expect(at[0]!.passHat).toBeCloseTo(rate!, 10);
        expect(at[0]!.mixed).toBe(0);
        expect(at.at(-1)!.k).toBe(fewestAttempts(tasks));
        expect(shapes.allPass + shapes.allFail + shapes.mixed).toBe(n);
      }),
    );
  });

  test("stays exact where factorials would overflow", () => {
    const many = { task: "a", outcomes: Array.from({ length: 5000 }, (_, at) => at < 2500) };
    const { at } = solveSummary([many], { seed: 1, resamples: 10 });
    const two = at.find(({ k }) => k === 2)!;
    // 1 − C(2500,2)/C(5000,2) = 1 − (2500·2499)/(5000·4999)
    expect(two.pass).toBeCloseTo(1 - (2500 * 2499) / (5000 * 4999), 12);
    for (const { pass, passHat, mixed } of at)
      for (const value of [pass, passHat, mixed]) expect(value).toSatisfy((v: number) => v >= 0 && v <= 1);
  });

  test("what is undefined is null or refused, never 0", () => {
    const none = solveSummary([]);
    expect(none).toMatchObject({ rate: null, rateInterval: null, attemptInterval: null, at: [] });
    expect(mixedAtK([task("a", "+-"), task("b", "+")], 2)).toBeNull();
    expect(mixedAtK([], 1)).toBeNull();
    expect(() => solveSummary([task("a", "")])).toThrow(RangeError);
    expect(solveSummary([task("a", "+-")]).rateInterval).toBeNull();
    expect(groupShapes([task("a", "+")])).toEqual({ allPass: 1, allFail: 0, mixed: 0 });
  });

  test("counts of attempts are powers of two and the last one", () => {
    expect([0, 1, 2, 6, 8].map(attemptCounts)).toEqual([[], [1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]);
  });
});

describe("the bootstrap", () => {
  const tasks = Array.from({ length: 40 }, (_, at) => task(`t${at}`, at % 4 === 0 ? "++++" : "----"));

  test("is the same for the same seed and another for another", () => {
    const values = Array.from({ length: 15 }, (_, at) => at ** 2.5);
    const interval = (seed: number) => bootstrapInterval(values, mean, { seed, resamples: 300 });
    expect(interval(3)).toEqual(interval(3));
    expect(interval(3)).not.toEqual(interval(4));
  });

  test("agrees with the normal interval of a mean, and draws tasks, not attempts", () => {
    const [low, high] = bootstrapInterval(tasks, solveRate, { seed: 1, resamples: 4_000 })!;
    // 40 tasks of rate 0 or 1, a quarter 1: the standard error of their mean is √(0.25·0.75/40) = 0.0685.
    const half = 1.96 * Math.sqrt((0.25 * 0.75) / 40);
    expect(low).toBeCloseTo(0.25 - half, 1);
    expect(high).toBeCloseTo(0.25 + half, 1);
    // The 160 attempts, taken as independent, would claim half of that.
    const [wilsonLow, wilsonHigh] = solveSummary(tasks).attemptInterval!;
    expect((high - low) / (wilsonHigh - wilsonLow)).toBeGreaterThan(1.7);
  });

  test("equals the exact distribution of two tasks' resamples", () => {
    // The mean of two draws of {0, 1} is 0, 1/2, 1 with chances 1/4, 1/2, 1/4: the 2.5 % quantile is 0.
    const two = [task("a", "+"), task("b", "-")];
    expect(bootstrapInterval(two, solveRate, { seed: 1, resamples: 1_000 })).toEqual([0, 1]);
  });
});

describe("A against B", () => {
  const a = [task("a", "----"), task("b", "++++"), task("c", "+---"), task("d", "++"), task("only-a", "+")];
  const b = [task("a", "+---"), task("b", "----"), task("c", "+++-"), task("d", "+-"), task("only-b", "-")];

  test("by hand", () => {
    const found = compareTasks(a, b);
    expect(found).toMatchObject({ tasks: 4, onlyBefore: 1, onlyAfter: 1 });
    // (0.25 − 1 + 0.5 − 0.5)/4 = −0.1875
    expect(found.points).toBeCloseTo(-18.75, 10);
    expect(found.won).toEqual([{ task: "a", before: 0, after: 0.25 }]);
    expect(found.lost).toEqual([{ task: "b", before: 1, after: 0 }]);
    expect(found.better.map((one) => one.task)).toEqual(["c"]);
    expect(found.worse.map((one) => one.task)).toEqual(["d"]);
  });

  test("pairs: tasks of any difficulty that all gain the same leave no doubt", () => {
    const before = Array.from({ length: 12 }, (_, at) => task(`t${at}`, at % 2 ? "+---" : "++--"));
    const after = before.map(({ task: name, outcomes }) =>
      task(name, outcomes.map((one, at) => (one || at === 3 ? "+" : "-")).join("")),
    );
    const { points, pointsInterval } = compareTasks(before, after);
    expect(points).toBeCloseTo(25, 10);
    expect(pointsInterval![0]).toBeCloseTo(25, 10);
    expect(pointsInterval![1]).toBeCloseTo(25, 10);
  });

  test("turned round, the sign turns and won is lost; order does not matter", () => {
    fc.assert(
      fc.property(arbTasks, arbTasks, (before, after) => {
        const settings = { seed: 2, resamples: 50 };
        const there = compareTasks(before, after, settings);
        const back = compareTasks(after, before, settings);
        expect(there.points! + back.points!).toBeCloseTo(0, 10);
        expect(there.won.map((one) => one.task)).toEqual(back.lost.map((one) => one.task));
        expect(compareTasks([...before].reverse(), after, settings)).toEqual(there);
      }),
    );
  });

  test("without common tasks nothing is claimed", () => {
    expect(compareTasks([task("a", "+")], [task("b", "+")])).toMatchObject({
      points: null,
      pointsInterval: null,
    });
  });
});

describe("the scaling curve", () => {
  const scored = (marks: string, scores: readonly number[]) => ({
    task: marks,
    attempts: [...marks].map((mark, at) => ({ isResolved: mark === "+", score: scores[at]! })),
  });

  test("a perfect score reaches the oracle, a constant one stays at the solve rate, a reversed one falls", () => {
    const perfect = scalingCurve([scored("+---", [1, 0, 0, 0])]);
    expect(perfect.map(({ n, best, oracle }) => [n, best, oracle])).toEqual([
      [1, 0.25, 0.25],
      [2, 0.5, 0.5],
      [4, 1, 1],
    ]);
    for (const { best } of scalingCurve([scored("+---", [5, 5, 5, 5])])) expect(best).toBeCloseTo(0.25, 12);
    expect(scalingCurve([scored("+---", [0, 1, 1, 1])]).at(-1)).toEqual({ n: 4, best: 0, oracle: 1 });
  });

  test("never passes the oracle and begins at the solve rate", () => {
    const arbScored = fc.array(
      fc.record({ isResolved: fc.boolean(), score: fc.integer({ min: 0, max: 3 }) }),
      {
        minLength: 1,
        maxLength: 6,
      },
    );
    fc.assert(
      fc.property(fc.array(arbScored, { minLength: 1, maxLength: 4 }), (lists) => {
        const curve = scalingCurve(lists.map((attempts, at) => ({ task: `t${at}`, attempts })));
        for (const { best, oracle } of curve) expect(best).toBeLessThanOrEqual(oracle + 1e-12);
        expect(curve[0]!.best).toBeCloseTo(curve[0]!.oracle, 12);
      }),
    );
  });

  test("without tasks there is no point", () => expect(scalingCurve([])).toEqual([]));
});
