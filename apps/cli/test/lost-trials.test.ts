import { create } from "@bufbuild/protobuf";
import { Outcome, TerminationReason, TrialTransitionSchema } from "@mortise/contracts";
import { expect, test } from "vitest";
import { lostLines, lostTrials } from "../src/records/lost-trials.js";

const ended = (task: string, termination: TerminationReason, outcome?: Outcome, reason = "") =>
  create(TrialTransitionSchema, {
    task: { id: task },
    termination,
    reason,
    ...(outcome === undefined ? {} : { outcome }),
  });

const { COMPLETED, SETUP_FAILED } = TerminationReason;

test("trials without a verdict that counts are told by their cause, those with one are not", () => {
  const lost = lostTrials([
    ended("a", COMPLETED, Outcome.RESOLVED),
    ended("a", COMPLETED, Outcome.UNRESOLVED),
    ended("c", COMPLETED, Outcome.INVALID_TAMPER, "a canary passed"),
    ended("b", SETUP_FAILED, Outcome.INVALID_TASK, "no such image"),
    ended("b", SETUP_FAILED, Outcome.INVALID_TASK, "no such image"),
    ended("a", SETUP_FAILED, Outcome.INVALID_TASK, "no such image"),
  ]);
  expect(lost).toEqual([
    { termination: "setup-failed", reason: "no such image", trials: 3, tasks: ["a", "b"] },
    { termination: "completed", reason: "a canary passed", trials: 1, tasks: ["c"] },
  ]);
  expect(lostLines(lost)).toEqual([
    "lost: 3 of 2 tasks, setup-failed: no such image",
    "lost: 1 of c, completed: a canary passed",
  ]);
});

test("of many causes the rarest share a line, so that every lost trial is counted", () => {
  const lost = lostTrials(
    Array.from({ length: 8 }, (_, at) => ended("a", SETUP_FAILED, undefined, `reason ${at}`)),
  );
  expect(lostLines(lost)).toHaveLength(6);
  expect(lostLines(lost).at(-1)).toBe("lost: 3 for other reasons");
  expect(lostLines([])).toEqual([]);
});
