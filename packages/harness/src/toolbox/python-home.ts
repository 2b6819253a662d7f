/** Owns where an installed Python keeps its program and standard library, and copying the two elsewhere. */
import { cpSync, globSync, mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { runCommand } from "../runtime/command.js";

const ASK_TIMEOUT_MS = 10_000;
/** A virtual environment's program is a link to the one that counts. */
const QUESTION = [
  "import json, sys, sysconfig",
  'program = getattr(sys, "_base_executable", None) or sys.executable',
  'answer = {"program": program, "library": sysconfig.get_path("stdlib"), "folder": sys.platlibdir}',
  "print(json.dumps(answer))",
].join("\n");
/** Tests of the library itself, and what only building or drawing needs: half of its size. */
const LEFT_OUT =
  /\/(test|tests|idlelib|turtledemo|ensurepip|tkinter|_tkinter[^/]*\.so|site-packages|config-[^/]*)$/;

const MODULES = "lib-dynload/*.so";

export interface PythonHome {
  readonly program: string;
  /** Its standard library. */
  readonly library: string;
  /** The library's parent below a prefix: `lib` or `lib64`. */
  readonly folder: string;
  /** Compiled modules, which load shared libraries of their own. */
  readonly modules: readonly string[];
}

/** @throws MortiseError MORTISE_HARNESS_RUNTIME (field `python`) */
export async function pythonHome(python: string): Promise<PythonHome> {
  const { ok, output } = await runCommand(python, ["-c", QUESTION], { cwd: "/", timeoutMs: ASK_TIMEOUT_MS });
  if (!ok)
    throw new MortiseError({
      code: "MORTISE_HARNESS_RUNTIME",
      message: `${python} does not say where its library is: ${output.trim()}`,
      detail: { field: "python" },
    });
  const { program, library, folder } = JSON.parse(output) as Omit<PythonHome, "modules">;
  const real = realpathSync(library);
  return { program: realpathSync(program), library: real, folder, modules: modulesOf(real) };
}

function modulesOf(library: string): string[] {
  const found = globSync(MODULES, { cwd: library }).map((name) => join(library, name));
  return found.filter((file) => !LEFT_OUT.test(file)).sort();
}

/** Lays a Python out below `prefix`, where it finds its library by itself. @returns its program and its modules */
export function copyPython({ program, library, folder }: PythonHome, prefix: string) {
  const copy = join(prefix, "bin", basename(program));
  const libraryCopy = join(prefix, folder, basename(library));
  mkdirSync(join(prefix, "bin"), { recursive: true });
  cpSync(program, copy);
  symlinkSync(basename(program), join(prefix, "bin", "python3"));
  cpSync(library, libraryCopy, {
    recursive: true,
    // Compiled files name the time of their source.
    preserveTimestamps: true,
    filter: (source) => !LEFT_OUT.test(source.slice(library.length)),
  });
  return { program: copy, modules: modulesOf(libraryCopy) };
}
