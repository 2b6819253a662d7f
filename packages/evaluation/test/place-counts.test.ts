import { describe, expect, test } from "vitest";
import { placeCounts, type TrialFact } from "../src/index.js";
import { trialFact } from "./trial-fact.js";

const trial = (slot: number, change: Partial<TrialFact> = {}) =>
  trialFact({ set: "after", group: "after/a", slot, ...change });
const lost = { verdict: undefined, termination: "sandbox-lost" } as const;

describe("places of a set", () => {
  test("a loss that was repeated is none, and no loss is a 0", () => {
    const found = placeCounts(
      [
        trial(0),
        trial(1, lost),
        trial(1, { retry: 1, verdict: "unresolved" }),
        trial(2, lost),
        trial(2, { ...lost, retry: 1 }),
        trial(2, { ...lost, retry: 2 }),
        trial(3, { verdict: "invalid(task)", termination: "setup-failed" }),
        trial(4, { verdict: "invalid(tamper)", termination: "tamper" }),
        trial(5, { verdict: undefined, termination: "stale" }),
        trial(6, { verdict: undefined, termination: "cancelled" }),
      ],
      { places: 8, maxRetries: 2 },
    );
    expect(found).toMatchObject({ expected: 8, executed: 2, resolved: 1, lost: 5, open: 1 });
    expect(found.lostBy).toEqual({ infrastructure: 1, task: 1, tamper: 1, stale: 1, cancelled: 1 });
    // One of two (Wilson), and one of eight at least, seven at most.
    expect(found.resolvedInterval?.map((bound) => Number(bound.toFixed(4)))).toEqual([0.0945, 0.9055]);
    expect(found.bounds).toEqual([1 / 8, 7 / 8]);
  });

  test("a loss that has tries left is open; where the limit is not known it is a loss", () => {
    const trials = [trial(0), trial(1, { ...lost, retry: 1 })];
    expect(placeCounts(trials, { places: 2, maxRetries: 2 })).toMatchObject({ lost: 0, lostBy: {}, open: 1 });
    expect(placeCounts(trials)).toMatchObject({
      expected: null,
      executed: 1,
      lost: 1,
      open: null,
      bounds: null,
    });
  });

  test("of several verdicts in a place the last counts, once", () => {
    const trials = [trial(0, { verdict: "unresolved" }), trial(0, { retry: 1 })];
    expect(placeCounts(trials, { places: 1 })).toMatchObject({ executed: 1, resolved: 1, open: 0 });
  });

  test("without trials nothing is claimed", () => {
    const found = placeCounts([], { places: 3 });
    expect(found).toMatchObject({
      expected: 3,
      executed: 0,
      open: 3,
      resolvedInterval: null,
      bounds: [0, 1],
    });
    expect(placeCounts([], { places: 0 }).bounds).toBeNull();
  });
});
