/** Every shared recording of a harness gives the tree that was reviewed by hand (C4 to C6). */
import { expect, test } from "vitest";
import { replay } from "../../src/capture/replay.js";
import { replayedLine } from "../../src/commands/capture.js";
import { expectedTrees, fileOf, recordings } from "./expected-trees.js";

const trees = expectedTrees();

test("every recording has a reviewed tree, and every tree a recording", () => {
  expect([...trees.keys()].sort()).toEqual([...recordings].sort());
  expect(recordings.length).toBeGreaterThan(90);
});

test.each(recordings)("%s", (recording) => {
  const lines = replay(fileOf(recording)).map(replayedLine);
  expect(lines.map(({ reason: _, ...line }) => line)).toEqual(trees.get(recording));
  for (const { reason } of lines) expect(reason).not.toBe("");
});
