/** Which replies go round in circles. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { endlessPeriod } from "../src/session/repetition.js";

const round = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 64 });
const before = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 100 });
const repeated = (circle: readonly number[], rounds: number) =>
  Array.from({ length: rounds }, () => circle).flat();

describe("a reply", () => {
  test("that ends in a circle is told, whatever stands before", () => {
    fc.assert(
      fc.property(before, round, (head, circle) => {
        const rounds = Math.max(16, Math.ceil(128 / circle.length));
        const period = endlessPeriod(Int32Array.from([...head, ...repeated(circle, rounds)]));
        expect(period).toBeLessThanOrEqual(circle.length);
      }),
    );
  });

  test("that says something new at last, or repeats itself a few times, is none", () => {
    expect(endlessPeriod(Int32Array.from([...repeated([1, 2, 3], 100), 4]))).toBeUndefined();
    expect(endlessPeriod(Int32Array.from(repeated([1], 127)))).toBeUndefined();
    expect(
      endlessPeriod(
        Int32Array.from(
          repeated(
            Array.from({ length: 40 }, (_, at) => at),
            15,
          ),
        ),
      ),
    ).toBeUndefined();
    expect(
      endlessPeriod(Int32Array.from(Array.from({ length: 4_000 }, (_, at) => (at * at) % 997))),
    ).toBeUndefined();
    expect(endlessPeriod(new Int32Array())).toBeUndefined();
  });

  test("of one token for ever has a circle of one", () => {
    expect(endlessPeriod(Int32Array.from(repeated([7], 128)))).toBe(1);
  });
});
