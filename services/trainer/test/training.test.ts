/** The course of training: which groups make up which step, whatever order and repetition they arrive with. */
import { ExclusionReason } from "@mortise/contracts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type DecidedGroup, formBatch, lowestVersion } from "../src/step/form-batch.js";
import { onMessage, type TrainingEffect, type TrainingMessage, type TrainingState } from "../src/training.js";
import { groupRecord, member } from "./support/captured.js";

const rules = { groupsPerStep: 2, refillDropped: false, staleBound: 1 };

function decided(sequence: number, options: { version?: number; isDropped?: boolean } = {}): DecidedGroup {
  const versions = [options.version ?? 0];
  const record = groupRecord({
    group: `g${sequence}`,
    members: [
      member({ trial: `g${sequence}-0`, reward: 1, versions }, 0),
      member({ trial: `g${sequence}-1`, reward: 0, versions }, 1),
    ],
    ...(options.isDropped ? { dropReason: ExclusionReason.ZERO_VARIANCE } : {}),
  });
  return { sequence, record };
}

describe("forming a batch", () => {
  test("takes groups in stream order and waits for the last", () => {
    expect(formBatch([decided(3)], 1, rules)).toBeUndefined();
    const batch = formBatch([decided(3), decided(5), decided(6)], 1, rules)!;
    expect(batch.map((group) => [group.sequence, group.fate])).toEqual([
      [3, "admitted"],
      [5, "admitted"],
    ]);
  });

  test("dropped and stale groups count without refill and do not with it", () => {
    const queue = [
      decided(1, { isDropped: true }),
      decided(2, { version: 0 }),
      decided(3, { version: 2 }),
      decided(4, { version: 2 }),
    ];
    expect(formBatch(queue, 3, rules)!.map((group) => group.fate)).toEqual(["dropped", "stale"]);
    const refilled = formBatch(queue, 3, { ...rules, refillDropped: true })!;
    expect(refilled.map((group) => group.fate)).toEqual(["dropped", "stale", "admitted", "admitted"]);
  });

  test("the bound is on the lowest version of members that train", () => {
    expect(
      formBatch([decided(1, { version: 1 }), decided(2, { version: 0 })], 3, rules)!.map((g) => g.fate),
    ).toEqual(["admitted", "stale"]);
    expect(lowestVersion(groupRecord({ group: "g", members: [] }))).toBeUndefined();
  });
});

describe("the actor's reducer", () => {
  const initial: TrainingState = { version: 0, cursor: 0, queue: [], phase: "held", lastStep: 3, rules };

  function run(messages: readonly TrainingMessage[]) {
    let state = initial;
    const effects: TrainingEffect[] = [];
    for (const message of messages) {
      const step = onMessage(state, message);
      state = step.state;
      effects.push(...step.effects);
    }
    return { state, effects };
  }
  const arrived = (sequence: number): TrainingMessage => ({ kind: "group", group: decided(sequence) });
  const committed = (version: number, cursor: number): TrainingMessage => ({
    kind: "committed",
    version,
    cursor,
  });

  test("nothing is trained before it is known where training stands", () => {
    expect(run([arrived(1), arrived(2)]).effects).toEqual([]);
    expect(run([arrived(1), arrived(2), committed(0, 0)]).effects).toMatchObject([
      { kind: "train", step: 1 },
    ]);
  });

  test("after a restart, groups up to the cursor are not trained again", () => {
    const { effects } = run([arrived(1), arrived(2), arrived(3), committed(1, 2), arrived(4)]);
    expect(effects).toMatchObject([{ kind: "train", step: 2, batch: [{ sequence: 3 }, { sequence: 4 }] }]);
  });

  test("one step at a time, and none past the last", () => {
    const { state, effects } = run([
      committed(2, 4),
      arrived(5),
      arrived(6),
      arrived(7),
      arrived(8),
      committed(3, 6),
      arrived(9),
      arrived(10),
    ]);
    expect(effects.map((effect) => effect.kind)).toEqual(["train", "finished"]);
    expect(state.phase).toBe("finished");
  });

  test("however deliveries repeat, each group is in exactly one batch", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 12 }), (repeats) => {
        let state = onMessage(initial, committed(0, 0)).state;
        const trained: number[] = [];
        const send = (message: TrainingMessage): void => {
          const step = onMessage(state, message);
          state = step.state;
          for (const effect of step.effects) {
            if (effect.kind !== "train") continue;
            trained.push(...effect.batch.map((group) => group.sequence));
            send(committed(effect.step, effect.batch.at(-1)!.sequence));
          }
        };
        for (const sequence of [1, 2, 3, 4, 5, 6]) {
          send(arrived(sequence));
          for (const again of repeats) if (again <= sequence) send(arrived(again));
        }
        expect(trained).toEqual([1, 2, 3, 4, 5, 6]);
      }),
    );
  });
});
