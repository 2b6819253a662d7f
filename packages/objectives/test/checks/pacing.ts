/** Checks of the staleness and capacity entries, ours and other systems'. */
import { expect } from "vitest";
import {
  admissionCapacity,
  capacityVerlAsync,
  isTooStale,
  stalenessPrime,
  stalenessVerlV1,
} from "../../src/index.js";
import type { Check } from "./vector.js";

export const pacingChecks: Record<string, Check> = {
  capacity_areal: ({ inputs, expected }) => {
    const capacities = inputs.cases.map(
      ([bound, version, batch, accepted, running, maxConcurrent]: [
        number,
        number,
        number,
        number,
        number,
        number,
      ]) => admissionCapacity({ bound, version, batch, accepted, running, maxConcurrent }),
    );
    expect(capacities).toEqual(expected.capacity);
  },
  capacity_verl_async: ({ inputs, expected }) => {
    const result = capacityVerlAsync({
      required: inputs.required,
      threshold: inputs.staleness,
      syncSteps: inputs.sync_steps,
      activeAtSync: inputs.active_at_sync,
      queuedAtSync: inputs.queued_at_sync,
    });
    expect(result).toEqual({
      maxRequired: expected.max_required,
      counterAfterSync: expected.counter_after_sync,
      mayStartBeforeNextSync: expected.may_start_before_next_sync,
    });
  },
  staleness_prime: ({ inputs, expected }) => {
    const result = stalenessPrime(inputs.step, inputs.start, inputs.end, inputs.max);
    expect(result).toEqual({
      total: expected.total,
      inFlight: expected.in_flight,
      inQueue: expected.in_queue,
      minFresh: expected.min_fresh,
      isDropped: expected.drop,
    });
    expect(isTooStale(inputs.step, inputs.start, inputs.max)).toBe(expected.drop);
  },
  staleness_verl_v1: ({ inputs, expected }) => {
    const results = inputs.starts.map((start: number) =>
      stalenessVerlV1(inputs.step, start, inputs.threshold),
    );
    expect(results).toEqual(
      expected.span.map((span: number, i: number) => ({ span, isDropped: expected.drop[i] })),
    );
  },
};
