/**
 * Owns what a clean search of a root does not show, in words for the record of a trial. Does not judge it: a task whose
 * repair is one common line can be a good task.
 */
import type { SealReport } from "../sealing/types.js";

const ANSWER_NAMES = {
  gold: "the gold patch",
  test: "the test patch",
  "hidden-file": "the hidden tests and solution",
} as const;

/** Where the search had nothing to look for, finding nothing shows nothing: the record of every trial says so. */
export function unproved({ search: { distinctiveness, probes } }: Pick<SealReport, "search">): string[] {
  if (probes.length === 0)
    return ["the task names nothing that could be searched for: the search shows nothing"];
  return distinctiveness
    .filter(({ nProbes }) => nProbes === 0)
    .map(
      ({ kind }) =>
        `no line of ${ANSWER_NAMES[kind]} tells it from the task's files: it was not searched for`,
    );
}
