/** Owns the door to choosing tasks: thin indexes, rules that drop tasks, proofs that two sets are disjoint. */
export { indexFile, readIndex, writeIndex } from "./index-files.js";
export { fromIndexRow, type IndexedTask, type IndexRow, toIndexRow } from "./indexed-task.js";
