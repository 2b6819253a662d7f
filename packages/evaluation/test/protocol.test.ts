import { describe, expect, it } from "vitest";
import {
  BANDS,
  bandOf,
  type Conditions,
  countByBand,
  differencesOf,
  difficultyOf,
  protocolDigest,
} from "../src/index.js";

describe("the digest of a protocol", () => {
  it("does not depend on the order of keys, and on everything else", () => {
    const one = { name: "a", limits: { maxTurns: 4, pids: 9 }, graders: ["x", "y"] };
    const turned = { graders: ["x", "y"], limits: { pids: 9, maxTurns: 4 }, name: "a" };
    expect(protocolDigest(turned)).toBe(protocolDigest(one));
    for (const other of [
      { ...one, name: "b" },
      { ...one, limits: { maxTurns: 5, pids: 9 } },
      { ...one, graders: ["y", "x"] },
      { ...one, limits: { maxTurns: "4", pids: 9 } },
    ])
      expect(protocolDigest(other)).not.toBe(protocolDigest(one));
    expect(protocolDigest({})).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("conditions", () => {
  const task = (digest: string, ...graders: string[]) => ({ digest, graders: new Set(graders) });
  const base: Conditions = {
    protocol: { name: "p", attempts: 4, limits: { maxTurns: 8 }, graders: [] },
    harness: "mini",
    harnessVersions: ["1"],
    tasks: new Map([
      ["a", task("d1", "g1")],
      ["b", task("d2", "g2")],
    ]),
  };

  it("agree under another name of the same protocol", () => {
    expect(differencesOf(base, { ...base, protocol: { ...base.protocol, name: "q" } })).toEqual([]);
  });

  it("differ by each setting, which is named with both values", () => {
    const protocol = { name: "p", attempts: 1, limits: { maxTurns: 8, cpus: 2 }, graders: [] };
    expect(differencesOf(base, { ...base, protocol })).toEqual([
      { field: "attempts", before: "4", after: "1" },
      { field: "limits.cpus", before: "–", after: "2" },
    ]);
  });

  it("of a run without a protocol agree with no protocol; two without are compared as they are", () => {
    const { protocol: _, ...rest } = base;
    const without = { ...rest, protocol: undefined };
    expect(differencesOf(without, { ...without, harnessVersions: ["2"] })).toEqual([]);
    expect(differencesOf(base, without)).toEqual([
      { field: "protocol", before: "p", after: "none recorded" },
    ]);
  });

  it("differ by the version of one harness, not by which harness it is", () => {
    const newer = { ...base, harnessVersions: ["2"] };
    expect(differencesOf(base, newer)).toEqual([{ field: "harness.version", before: "1", after: "2" }]);
    expect(differencesOf(base, { ...newer, harness: "codex" })).toEqual([]);
    expect(differencesOf(base, { ...base, harnessVersions: [] })).toEqual([]);
  });

  it("differ where a task is another task, or is judged by another grader; other tasks do not count", () => {
    const tasks = new Map([
      ["a", task("d1", "g9")],
      ["b", task("d9", "g2")],
      ["c", task("d3", "g3")],
    ]);
    expect(differencesOf(base, { ...base, tasks })).toEqual([
      { field: "tasks", before: "b@d2", after: "b@d9" },
      { field: "graders", before: "g1, g2", after: "g2, g9" },
    ]);
    expect(differencesOf(base, { ...base, tasks: new Map([["z", task("d", "g9")]]) })).toEqual([]);
  });
});

describe("difficulty", () => {
  it("is called by the solve rate, the ends by themselves", () => {
    const rates = [0, 0.01, 0.25, 0.26, 0.74, 0.75, 0.99, 1];
    expect(rates.map(bandOf)).toEqual([
      "never",
      "hard",
      "hard",
      "medium",
      "medium",
      "easy",
      "easy",
      "always",
    ]);
  });

  it("says how little few attempts tell", () => {
    const one = difficultyOf({ task: "t", outcomes: [true, false, false, false] });
    expect(one).toMatchObject({ task: "t", attempts: 4, resolved: 1, solveRate: 0.25, band: "hard" });
    // Wilson's interval of 1 of 4.
    expect(one.interval![0]).toBeCloseTo(0.0456, 4);
    expect(one.interval![1]).toBeCloseTo(0.6994, 4);
  });

  it("counts every band, also those without a task", () => {
    expect(countByBand([{ band: "easy" }, { band: "easy" }, { band: "never" }])).toEqual({
      never: 1,
      hard: 0,
      medium: 0,
      easy: 2,
      always: 0,
    });
    expect(Object.keys(countByBand([]))).toEqual([...BANDS]);
  });
});
