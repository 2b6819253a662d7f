/**
 * Owns the order in which a version becomes real, and the names of the moments between two phases.
 * A process may die at any of them; `recover.ts` says what a start then finds.
 *
 *   computed → staged → stored → uploaded → current → announced → recorded → acknowledged
 *
 * | died after  | on disk     | KV  | a start                                                        |
 * |-------------|-------------|-----|----------------------------------------------------------------|
 * | computed    | n−1         | n−1 | forms the same batch again: the stream has its order            |
 * | staged      | n−1, a temporary directory | n−1 | removes the directory, forms the batch again     |
 * | stored      | n           | n−1 | uploads, then publishes n if its compare-and-set succeeds       |
 * | uploaded    | n           | n−1 | the same; the object is content-addressed, so nothing is doubled |
 * | current     | n           | n   | announces, records and acknowledges                             |
 * | announced   | n           | n   | records and acknowledges                                        |
 * | recorded    | n           | n   | acknowledges                                                    |
 */
export const COMMIT_PHASES = [
  "computed",
  "staged",
  "stored",
  "uploaded",
  "current",
  "announced",
  "recorded",
  "acknowledged",
] as const;
export type CommitPhase = (typeof COMMIT_PHASES)[number];

/** Called when a phase of the commit of `version` has ended. Lets a test end the process exactly there. */
export type OnPhase = (phase: CommitPhase, version: number) => void;
