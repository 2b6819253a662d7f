/**
 * Every applicable entry of the acceptance numbers, and proof that none was forgotten.
 */
import { describe, expect, test } from "vitest";
import { advantageChecks } from "./checks/advantages.js";
import { checkedElsewhere } from "./checks/elsewhere.js";
import { evaluationChecks } from "./checks/evaluation.js";
import { lossChecks } from "./checks/losses.js";
import { monitoringChecks } from "./checks/monitoring.js";
import { optimiserChecks } from "./checks/optimiser.js";
import { pacingChecks } from "./checks/pacing.js";
import { expectClose, vectors } from "./checks/vector.js";

const checks = {
  ...advantageChecks,
  ...evaluationChecks,
  ...lossChecks,
  ...monitoringChecks,
  ...optimiserChecks,
  ...pacingChecks,
};

describe("acceptance numbers", () => {
  test.each(Object.entries(checks))("%s", (name, check) => {
    expect(vectors[name], `vectors.json has no entry ${name}`).toBeDefined();
    check(vectors[name]!);
    expect.hasAssertions();
  });

  test("every entry is checked here or listed with the reason why not", () => {
    const accountedFor = [...Object.keys(checks), ...Object.keys(checkedElsewhere)].sort();
    expect(accountedFor).toEqual(Object.keys(vectors).sort());
  });

  test("the comparison itself fails on a wrong number, a missing value and a wrong length", () => {
    expect(() => expectClose(1.1, 1, 0.01)).toThrow();
    expect(() => expectClose(0, null, 1)).toThrow();
    expect(() => expectClose(Number.NaN, 1, 1)).toThrow();
    expect(() => expectClose([1], [1, 2], 1)).toThrow();
  });
});
