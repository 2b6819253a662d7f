/**
 * Owns what of a task must not be found where its agent runs: gold patch, solution, hidden tests, their names.
 * Reads the task's directory; does not search (sealing/).
 */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { filesBelow, type Task } from "@mortise/tasks";
import type { Answers } from "../sealing/types.js";

/** A larger file is data, not something a line of which gives an answer away. */
const MAX_FILE_BYTES = 1024 * 1024;
/** Read as names, below `hiddenTests`. */
const EXPECTED = "expected.json";

export function answersOf({ tests, solution }: Task): Answers {
  const hidden = [
    ...textsBelow(tests.directory, "tests").filter(({ path: file }) => file !== `tests/${EXPECTED}`),
    ...(solution === undefined ? [] : textsBelow(solution.directory, "solution")).filter(
      ({ path: file }) => path.join(solution!.directory, "..", file) !== solution!.patch,
    ),
  ];
  return {
    ...(solution?.patch === undefined ? {} : { goldPatch: readFileSync(solution.patch, "utf8") }),
    hiddenFiles: hidden,
    ...(tests.expected === undefined ? {} : { hiddenTests: tests.expected.failToPass }),
  };
}

function textsBelow(directory: string, name: string): { path: string; content: string }[] {
  return filesBelow(directory).flatMap((file) => {
    const place = path.join(directory, file);
    const stat = statSync(place, { throwIfNoEntry: false });
    if (stat === undefined || !stat.isFile() || stat.size > MAX_FILE_BYTES) return [];
    const content = readFileSync(place);
    // Bytes that are no text have no lines to look for.
    return content.includes(0) ? [] : [{ path: `${name}/${file}`, content: content.toString("utf8") }];
  });
}
