/**
 * Owns the hidden tests of the bundled library's targets: the calls and the values they must return.
 * Does not run them (demo/run.cjs) and is never laid out where an agent can read it.
 *
 * Each file's list covers its targets where every mutation shows (empty list, single element, negative numbers,
 * elements equal to the limit, long lists) and the neighbours that must keep working.
 */
export interface HiddenCase {
  readonly name: string;
  readonly function: string;
  readonly args: readonly unknown[];
  readonly expected: unknown;
}

/** What hidden tests check in one file of the library. */
export interface HiddenSuite {
  /** Path of the module relative to the repository. */
  readonly entry: string;
  readonly cases: readonly HiddenCase[];
}

const AGGREGATE: HiddenSuite = {
  entry: "src/aggregate.js",
  cases: [
    { name: "sum of nothing", function: "sum", args: [[]], expected: 0 },
    { name: "sum of one", function: "sum", args: [[7]], expected: 7 },
    { name: "sum of several", function: "sum", args: [[4, 9, 2, 5]], expected: 20 },
    { name: "sum with negatives", function: "sum", args: [[-3, 8, -1]], expected: 4 },
    { name: "product of nothing", function: "product", args: [[]], expected: 1 },
    { name: "product of one", function: "product", args: [[6]], expected: 6 },
    { name: "product of several", function: "product", args: [[2, 5, 3, 4]], expected: 120 },
    { name: "product with negatives", function: "product", args: [[-2, 3, -4]], expected: 24 },
    { name: "mean of several", function: "mean", args: [[3, 5, 10]], expected: 6 },
    { name: "spread of several", function: "spread", args: [[4, -2, 9]], expected: 11 },
    { name: "running sums", function: "runningSums", args: [[5, -1, 2]], expected: [5, 4, 6] },
  ],
};

const COUNT: HiddenSuite = {
  entry: "src/count.js",
  cases: [
    { name: "countAbove of nothing", function: "countAbove", args: [[], 3], expected: 0 },
    { name: "countAbove of all", function: "countAbove", args: [[5, 6, 7], 4], expected: 3 },
    { name: "countAbove excludes the limit", function: "countAbove", args: [[4, 4, 5], 4], expected: 1 },
    { name: "countAbove of some", function: "countAbove", args: [[1, 8, 3, 9, 7, 2], 6], expected: 3 },
    { name: "countAbove a negative limit", function: "countAbove", args: [[-9, -2, 0], -5], expected: 2 },
    { name: "countBelow of nothing", function: "countBelow", args: [[], 3], expected: 0 },
    { name: "countBelow of all", function: "countBelow", args: [[1, 2, 3], 4], expected: 3 },
    { name: "countBelow excludes the limit", function: "countBelow", args: [[4, 4, 3], 4], expected: 1 },
    { name: "countBelow of some", function: "countBelow", args: [[1, 8, 3, 9, 7, 2], 6], expected: 3 },
    { name: "countBelow a negative limit", function: "countBelow", args: [[-9, -2, 0], -5], expected: 1 },
    {
      name: "countBetween includes its limits",
      function: "countBetween",
      args: [[1, 2, 5, 6], 2, 5],
      expected: 2,
    },
    {
      name: "frequencies",
      function: "frequencies",
      args: [[3, 1, 3]],
      expected: [
        [3, 2],
        [1, 1],
      ],
    },
  ],
};

/** A function which demo tasks break, with the sentence that asks for its repair in the library's own names. */
export interface Target {
  readonly function: string;
  readonly sentence: string;
  readonly suite: HiddenSuite;
}

export const TARGETS: readonly Target[] = [
  { function: "sum", sentence: "sum of xs", suite: AGGREGATE },
  { function: "product", sentence: "product of xs", suite: AGGREGATE },
  { function: "countAbove", sentence: "count el above lim in xs", suite: COUNT },
  { function: "countBelow", sentence: "count el below lim in xs", suite: COUNT },
];
