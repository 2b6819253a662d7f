/**
 * Owns tasks: Harbor task directories, their index and digest, their validation, and the bundled demo family
 * with its demonstrations and chat format. Does not run sandboxes, grade trials or train.
 */
export { DEMO_SPECIAL_TOKENS, demoChatTemplate, demoTools } from "./demo/chat-template.js";
export { compact } from "./demo/compact.js";
export {
  type DemoMessage,
  type Demonstration,
  type DemonstrationOptions,
  type DemoToolCall,
  demonstration,
  demonstrationLines,
  generateDemonstrations,
} from "./demo/demonstrations.js";
export { type DemoTaskSet, generateDemoTasks, writeDemoTasks } from "./demo/generate.js";
export { importLibraryHistory } from "./demo/library.js";
export { type DemoPlanOptions, type DemoTask, demoFamily, type Edit, planDemoTasks } from "./demo/plan.js";
export { digestOfFiles, filesBelow, type TaskFileContent, taskDigest } from "./harbor/digest.js";
export type { ExpectedTests } from "./harbor/expected-tests.js";
export {
  type HostVariables,
  type ResolvedVariables,
  resolveVariables,
  type Variables,
  withoutSecrets,
} from "./harbor/host-variables.js";
export {
  type Healthcheck,
  listTaskIds,
  loadTask,
  type Task,
  type TaskNetwork,
  type TaskRole,
} from "./harbor/load-task.js";
export {
  indexTasks,
  loadIndexedTask,
  readTaskIndex,
  type TaskIndexEntry,
  writeTaskIndex,
} from "./harbor/task-index.js";
export { type Patch, type PatchFile, PatchSyntaxError, parsePatch } from "./import/patch/parse-patch.js";
export { gradeTaskLog } from "./validation/grade-task-log.js";
export {
  canCloseNetwork,
  executeInProcess,
  executeWithoutNetwork,
} from "./validation/process-executor.js";
export {
  type Execute,
  type Execution,
  type ExecutionResult,
  GOLD_ATTEMPTS,
  type Protection,
  type TaskValidation,
  type ValidateOptions,
  validateTask,
} from "./validation/validate-task.js";
export {
  DEMO_VALIDATION_PATH,
  readValidationRecord,
  type ValidationRecord,
  writeValidationRecord,
} from "./validation/validation-record.js";
export {
  QUARANTINE,
  readValidation,
  type StoredValidation,
  writeQuarantine,
  writeValidation,
} from "./validation/validation-store.js";
