export {
  type Behaviour,
  baseEnvironment,
  type CompactionTrigger,
  type EndKind,
  endingByExitCode,
  type HarnessAdapter,
  type HarnessEnd,
  isLacking,
  type Lacks,
  type Launch,
  type LaunchFile,
  type LaunchTarget,
  lacks,
  lastLine,
  type ProcessEnd,
  type RuntimeSpec,
  searchPath,
  type ToolUse,
  type ToolVocabulary,
  type WireApi,
} from "./adapter.js";
export { CommandHarness, commandAdapter } from "./command-adapter.js";
export { defaultCache, ensureRuntime, PYTHON_PACKAGES, type Runtime } from "./runtime/install.js";
