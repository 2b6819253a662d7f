/** Owns the door to choosing tasks: thin indexes, rules that drop tasks, proofs that two sets are disjoint. */
export {
  type DisjointLevel,
  type DisjointProof,
  type Identity,
  namesToExclude,
  proveDisjoint,
  readIdentities,
} from "./disjoint.js";
export { readExclusions } from "./exclusions.js";
export { indexFile, readIndex, writeIndex } from "./index-files.js";
export { fromIndexRow, type IndexedTask, type IndexRow, toIndexRow } from "./indexed-task.js";
export * from "./rules.js";
export { readSolveRates, withSolveRates } from "./solve-rates.js";
export { placedBelow, type TaskSource, type Union, unionOf, weighted } from "./union.js";
