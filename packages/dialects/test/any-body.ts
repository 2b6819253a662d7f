/** The claim every dialect makes of bodies: whatever JSON arrives, it is a request or a refusal that names a field. */
import { digestRequest } from "@mortise/capture";
import { MortiseError } from "@mortise/contracts";
import fc from "fast-check";
import { expect } from "vitest";
import type { Dialect } from "../src/index.js";
import { anyBody } from "./any-json.js";

const RUNS = 2_000;

/** @param bodies good ones, which are varied */
export function readsOrRefusesByName({ read }: Dialect, bodies: readonly object[]): void {
  let nRead = 0;
  fc.assert(
    fc.property(anyBody(bodies), (body) => {
      try {
        const request = read(body);
        digestRequest(request.conversation, request.toolChoice);
        nRead++;
      } catch (error) {
        if (!(error instanceof MortiseError)) throw error;
        expect(error.code).toBe("MORTISE_PROVIDER_BAD_REQUEST");
        expect(typeof error.detail.field).toBe("string");
      }
    }),
    { numRuns: RUNS },
  );
  // Neither all nor none: the values reach what they are meant to reach.
  expect(nRead).toBeGreaterThan(RUNS / 10);
  expect(nRead).toBeLessThan((RUNS * 9) / 10);
}

/** Deeper than any stack. */
export function endlessNesting(): unknown {
  let nested: unknown = [];
  for (let level = 0; level < 100_000; level++) nested = [nested];
  return nested;
}
