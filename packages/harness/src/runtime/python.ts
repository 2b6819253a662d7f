/** Owns finding a Python that is new enough. Does not install one. */
import { globSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import { runCommand } from "./command.js";

const PROBE_TIMEOUT_MS = 10_000;
const PROBE = "import sys, pip; print(sys.version_info[0], sys.version_info[1], sys.executable)";

export interface Python {
  readonly path: string;
  readonly version: readonly [major: number, minor: number];
}

/**
 * MORTISE_PYTHON, then the newest on PATH, then those of pyenv. Programs named on PATH may be stubs that do not
 * run: each is asked for its version.
 * @throws MortiseError MORTISE_HARNESS_RUNTIME (field `python`)
 */
export async function findPython(oldest: readonly [number, number]): Promise<Python> {
  const given = process.env.MORTISE_PYTHON;
  const pyenv = globSync("versions/3.*/bin/python3", {
    cwd: process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"),
  }).map((path) => join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), path));
  const candidates = given
    ? [given]
    : ["python3.13", "python3.12", "python3.14", "python3", ...pyenv.sort().reverse()];
  for (const candidate of candidates) {
    const { ok, output } = await runCommand(candidate, ["-c", PROBE], {
      cwd: homedir(),
      timeoutMs: PROBE_TIMEOUT_MS,
    });
    const [, major, minor, path] = /^(\d+) (\d+) (.+)$/m.exec(output) ?? [];
    const version = [Number(major), Number(minor)] as const;
    if (ok && path && isAtLeast(version, oldest)) return { path, version };
  }
  throw new MortiseError({
    code: "MORTISE_HARNESS_RUNTIME",
    message: `No Python ${oldest.join(".")} or newer with pip among ${candidates.join(", ")}.`,
    fix: "Install one, or name it in MORTISE_PYTHON.",
    detail: { field: "python" },
  });
}

function isAtLeast(version: readonly [number, number], oldest: readonly [number, number]): boolean {
  return version[0] > oldest[0] || (version[0] === oldest[0] && version[1] >= oldest[1]);
}
