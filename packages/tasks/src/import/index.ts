/**
 * Owns the door to importing: rows of data sets to Harbor task directories with an index. Apart from the package's
 * main door because a service that runs tasks reads no data sets.
 */
export { DEFAULT_LIMITS, importedTaskFiles, type TaskLimits } from "./directory/task-files.js";
export { type ImportOptions, type ImportReport, importTasks } from "./import-tasks.js";
export { describeProblem, type RowProblem, type RowRepair } from "./problems.js";
export { DATASETS, type DatasetName } from "./record.js";
export { joined, openRows } from "./rows/open-rows.js";
export type { Row, RowSource } from "./rows/row.js";
