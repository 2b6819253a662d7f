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
  type Needs,
  type ProcessEnd,
  type RuntimeSpec,
  STANDARD_PATH,
  type ToolUse,
  type ToolVocabulary,
  type WireApi,
} from "./adapter.js";
export { CommandHarness, commandAdapter } from "./command-adapter.js";
export { PYTHON_PACKAGES, pythonFile, pythonModule } from "./python-launch.js";
export { defaultCache, ensureRuntime, type Runtime } from "./runtime/install.js";
export { compareVersions, type ElfNeeds, elfNeeds, type Version } from "./toolbox/elf.js";
export { ensureToolbox, TOOLBOX, TOOLBOX_TARGET, type Toolbox } from "./toolbox/toolbox.js";
