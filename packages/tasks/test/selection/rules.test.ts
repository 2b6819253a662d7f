/** Rules that drop tasks, and the count of what each dropped. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  atMostPerRepository,
  createdBetween,
  ofLanguages,
  type Rule,
  sampleOf,
  select,
  within,
  without,
  withoutRepeats,
} from "../../src/selection/index.js";
import { task, tasksOf } from "./tasks.js";

const ids = (rule: Rule, tasks: Parameters<Rule["apply"]>[0]) => rule.apply(tasks).kept.map(({ id }) => id);

describe("one rule", () => {
  test("repeats of a task or of an instance leave the first", () => {
    const tasks = [task("a__b-1"), task("a__b-1"), task("c", { instance: "A__B-1" }), task("d")];
    expect(ids(withoutRepeats(), tasks)).toEqual(["a__b-1", "d"]);
  });

  test("exclusions name tasks, instances and repositories, whatever their case", () => {
    const tasks = [
      task("Django__django-1"),
      task("x", { instance: "y.z" }),
      task("psf__requests-1"),
      task("left__over-1"),
    ];
    expect(ids(without("list", new Set(["django/django", "y.z", "psf__requests-1"])), tasks)).toEqual([
      "left__over-1",
    ]);
  });

  test("languages and dates drop what does not say", () => {
    const tasks = [
      task("a", { language: "Python", createdAt: "2024-01-31T00:00:00Z" }),
      task("b", { language: "go", createdAt: "2024-02-01T00:00:00Z" }),
      task("c"),
      task("d", { createdAt: "soon" }),
    ];
    expect(ids(ofLanguages(new Set(["python"])), tasks)).toEqual(["a"]);
    expect(createdBetween("2024-01-31", "2024-02-01").apply(tasks)).toMatchObject({
      kept: [tasks[0]],
      unknown: 2,
    });
    expect(createdBetween(undefined, undefined).name).toBe("created");
  });

  test("the bounds of a range belong to it", () => {
    const tasks = [1, 2, 3].map((patchLines) => task(`t${patchLines}`, { patchLines }));
    const lines = ({ patchLines }: { patchLines?: number }) => patchLines;
    expect(ids(within("lines", { min: 2, max: 3 }, lines), tasks)).toEqual(["t2", "t3"]);
    expect(ids(within("lines", { max: 1 }, lines), [...tasks, task("none")])).toEqual(["t1"]);
    expect(within("lines", { max: 1 }, lines).name).toBe("lines ..1");
  });

  test("of each repository at most so many, whatever the case of its name", () => {
    const tasks = [
      ...tasksOf("a/b", 5),
      ...tasksOf("A/B", 3),
      ...tasksOf("c/d", 1),
      task("x", { repository: undefined as never }),
    ];
    const { kept, unknown } = atMostPerRepository(2, 1).apply(tasks);
    expect(kept.filter(({ repository }) => repository?.toLowerCase() === "a/b")).toHaveLength(2);
    expect(kept).toHaveLength(3);
    expect(unknown).toBe(1);
  });
});

describe("what is drawn", () => {
  const many = [...tasksOf("a/b", 40), ...tasksOf("c/d", 40)];
  const names = (rule: Rule, tasks = many) => new Set(ids(rule, tasks));

  test("depends on tasks and seed, not on their order (S2)", () => {
    fc.assert(
      fc.property(fc.shuffledSubarray(many, { minLength: many.length }), fc.nat(9), (shuffled, seed) => {
        for (const rule of [sampleOf(7, seed), atMostPerRepository(3, seed)])
          expect(names(rule, shuffled)).toEqual(names(rule));
      }),
      { numRuns: 20 },
    );
    expect(names(sampleOf(7, 1))).not.toEqual(names(sampleOf(7, 2)));
    expect(names(sampleOf(7, 1)).size).toBe(7);
    expect(names(sampleOf(1000, 1)).size).toBe(80);
  });

  test("a smaller sample is part of a larger one", () => {
    const large = names(sampleOf(30, 5));
    for (const name of names(sampleOf(10, 5))) expect(large).toContain(name);
  });

  test("follows the weights", () => {
    const heavy = many.map((of) => ({ ...of, weight: of.repository === "a/b" ? 9 : 1 }));
    let drawn = 0;
    for (let seed = 0; seed < 400; seed++)
      drawn += sampleOf(1, seed)
        .apply(heavy)
        .kept.filter(({ repository }) => repository === "a/b").length;
    // Nine in ten; the standard deviation of 400 draws is 6.
    expect(drawn).toBeGreaterThan(360 - 24);
    expect(drawn).toBeLessThan(360 + 24);
  });
});

test("the funnel accounts for every task", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ lines: fc.option(fc.nat(9)), repository: fc.nat(3) }), { maxLength: 30 }),
      (raw) => {
        const tasks = raw.map(({ lines, repository }, i) =>
          task(`t-${i}`, {
            repository: `o/r${repository}`,
            ...(lines === null ? {} : { patchLines: lines }),
          }),
        );
        const rules = [
          withoutRepeats(),
          within("lines", { min: 2 }, ({ patchLines }) => patchLines),
          atMostPerRepository(3, 1),
          sampleOf(5, 1),
        ];
        const { tasks: left, funnel } = select(tasks, rules);
        expect(funnel.reduce((sum, { dropped }) => sum + dropped, 0) + left.length).toBe(tasks.length);
        expect(funnel.at(-1)!.left).toBe(left.length);
        expect(funnel[1]!.unknown).toBe(tasks.filter(({ patchLines }) => patchLines === undefined).length);
        for (const step of funnel) expect(step.unknown).toBeLessThanOrEqual(step.dropped);
      },
    ),
  );
});
