/** Acknowledgements wait for the commit that consumed their group. */
import { expect, test } from "vitest";
import { CommitGate } from "../src/commit/commit-gate.js";

const never = new AbortController().signal;

test("a group passes when its version is committed, and not before", async () => {
  const gate = new CommitGate(4);
  const passed: number[] = [];
  const waits = [5, 6, 9].map((sequence) =>
    gate.committed(sequence, never).then(() => passed.push(sequence)),
  );
  await gate.committed(4, never);
  expect(passed).toEqual([]);
  gate.advance(6);
  await Promise.all(waits.slice(0, 2));
  expect(passed).toEqual([5, 6]);
  gate.advance(2);
  expect(gate.cursor).toBe(6);
});

test("a group that waits when the trainer stops is given back, to be delivered again", async () => {
  const gate = new CommitGate(0);
  const stop = new AbortController();
  const waiting = gate.committed(1, stop.signal);
  stop.abort();
  await expect(waiting).rejects.toMatchObject({ disposition: "retry" });
  await expect(gate.committed(2, stop.signal)).rejects.toMatchObject({ disposition: "retry" });
});
