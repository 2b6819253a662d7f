/**
 * Owns reading the acceptance numbers and comparing with each entry's own tolerance.
 */
import { readFileSync } from "node:fs";
import { expect } from "vitest";

/** One entry of vectors.json. Its shape differs per entry, so a check reads the fields it knows. */
export interface Vector {
  readonly description: string;
  // biome-ignore lint/suspicious/noExplicitAny: the fixture is untyped JSON
  readonly inputs: any;
  // biome-ignore lint/suspicious/noExplicitAny: the fixture is untyped JSON
  readonly expected: any;
  readonly abs_tol: number;
}

export type Check = (vector: Vector) => void;

const file = new URL("../fixtures/vectors.json", import.meta.url);
export const vectors: Readonly<Record<string, Vector>> = JSON.parse(readFileSync(file, "utf8"));

export interface BatchRow {
  readonly old: number[];
  readonly new: number[];
  readonly mask: number[];
  readonly adv: number;
}

export const batch: readonly BatchRow[] = vectors._batch!.inputs;

/** Asserts numbers, or nested arrays of numbers, within the tolerance; null only equals null. */
export function expectClose(actual: unknown, expected: unknown, tolerance: number): void {
  if (Array.isArray(expected)) {
    const values = Array.from(actual as ArrayLike<unknown>);
    expect(values).toHaveLength(expected.length);
    for (const [i, value] of expected.entries()) expectClose(values[i], value, tolerance);
    return;
  }
  if (expected === null) {
    expect(actual).toBeNull();
    return;
  }
  expect(actual).toBeTypeOf("number");
  expect(Math.abs((actual as number) - (expected as number))).toBeLessThanOrEqual(tolerance);
}
