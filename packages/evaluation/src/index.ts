/**
 * What is concluded from attempts that have ended: statistics of solving, comparison of two sets of attempts, what
 * agents did. Pure: values in, values out; no files, no bus.
 */
export * from "./behaviour/scan.js";
export { CATEGORIES, categoryOf, type ToolCategory } from "./behaviour/tool-categories.js";
export * from "./behaviour/transcript.js";
export * from "./difficulty/bands.js";
export * from "./protocol/conditions.js";
export * from "./protocol/protocol-digest.js";
export * from "./report/place-counts.js";
export * from "./report/set-report.js";
export * from "./report/trial-fact.js";
export * from "./scoring/calibration.js";
export * from "./scoring/precision-recall.js";
export * from "./scoring/ranking.js";
export * from "./scoring/scoring-summary.js";
export * from "./statistics/bootstrap.js";
export * from "./statistics/comparison.js";
export * from "./statistics/scaling.js";
export * from "./statistics/shapes.js";
export * from "./statistics/solve-summary.js";
export * from "./statistics/task-attempts.js";
