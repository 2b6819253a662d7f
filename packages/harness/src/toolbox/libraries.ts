/** Owns finding the shared libraries programs load on this host, by asking the loader. Copies nothing. */
import { spawnSync } from "node:child_process";
import { MortiseError } from "@mortise/contracts";

export interface LoadedLibraries {
  /** Absolute path of the loader itself. */
  readonly loader: string;
  /** File name as programs ask for it, and where the host has it. */
  readonly libraries: ReadonlyMap<string, string>;
}

/** `name => /path (0x…)`, or `/path (0x…)` for the loader; scripts and static programs give no such line. */
const LINE = /^\s*(?:(\S+)\s+=>\s+)?(\/\S+)\s+\(0x/gm;

/**
 * Asks about all programs at once: ldd is a shell script, and starting it costs more than its answer.
 * @throws MortiseError MORTISE_HARNESS_RUNTIME when it cannot be asked
 */
export function loadedLibraries(programs: readonly string[]): LoadedLibraries {
  const { stdout, error } = spawnSync("ldd", programs, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined)
    throw new MortiseError({
      code: "MORTISE_HARNESS_RUNTIME",
      message: `\`ldd\`, which finds shared libraries, cannot be run: ${error.message}`,
    });
  const found = [...stdout.matchAll(LINE)].map(([, name, path]) => ({ name, path: path! }));
  const loader = found.find(({ name }) => name === undefined)?.path;
  if (loader === undefined)
    throw new MortiseError({
      code: "MORTISE_HARNESS_RUNTIME",
      message: `\`ldd\` names no loader for ${programs[0]}`,
    });
  const libraries = found.flatMap(({ name, path }) => (name === undefined ? [] : [[name, path] as const]));
  return { loader, libraries: new Map(libraries) };
}
