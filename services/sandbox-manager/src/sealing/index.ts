/**
 * Owns what the rest of the sandbox-manager may use of sealing: `sealRoot` once per template, before any agent runs.
 */
export { hideHistory } from "./hide-history.js";
export { sealRoot } from "./seal-root.js";
export { searchForAnswers } from "./search/search-for-answers.js";
export * from "./types.js";
