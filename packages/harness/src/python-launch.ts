/**
 * Owns how a Python runtime is started: its packages are on the path of the harness's own process and in no
 * variable, or the programs an agent runs would find them too and import them instead of the repository's own.
 */
import { join } from "node:path";
import type { LaunchTarget } from "./adapter.js";

/** Where Python packages lie in a runtime. */
export const PYTHON_PACKAGES = "site";

/** Ignores PYTHON variables and the user's packages, and writes nothing beside the sources. */
const ISOLATED = ["-E", "-s", "-B"];
/** Replaces the working directory as the first place of imports: the repository must not stand in for a module. */
const RUN_MODULE = [
  "import runpy, sys",
  "sys.path[0], module, *rest = sys.argv[1:]",
  "sys.argv = [module, *rest]",
  'runpy.run_module(module, run_name="__main__", alter_sys=True)',
].join("\n");

/** Arguments that run a module of the runtime's packages; the module's own follow. */
export function pythonModule(target: LaunchTarget, module: string): readonly [string, ...string[]] {
  return [target.python, ...ISOLATED, "-c", RUN_MODULE, join(target.runtime, PYTHON_PACKAGES), module];
}

/** Arguments that run a file of the runtime, which puts the packages on its path itself. */
export function pythonFile(target: LaunchTarget, file: string): readonly [string, ...string[]] {
  return [target.python, ...ISOLATED, join(target.runtime, file)];
}
