/** Owns finding the shared libraries programs load on this host, by asking the loader. Copies nothing. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { MortiseError } from "@mortise/contracts";

export interface LoadedLibraries {
  /** Absolute path of the loader itself. */
  readonly loader: string;
  /** File name as programs ask for it, and where the host has it. */
  readonly libraries: ReadonlyMap<string, string>;
}

const C_LIBRARY = "libc.so.6";
/** Parts of glibc that programs and modules built elsewhere ask for by these names. */
const PARTS_OF_GLIBC =
  "libanl.so.1 libdl.so.2 libm.so.6 libmvec.so.1 libnss_dns.so.2 libnss_files.so.2 libpthread.so.0 libresolv.so.2 librt.so.1 libutil.so.1".split(
    " ",
  );

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
  const libraries = new Map(
    found.flatMap(({ name, path }) => (name === undefined ? [] : [[name, path] as const])),
  );
  return { loader, libraries: new Map([...partsBeside(libraries.get(C_LIBRARY)), ...libraries]) };
}

/** The rest of a C library, where there is any: what is loaded later may ask for it. */
function partsBeside(library: string | undefined): [string, string][] {
  if (library === undefined) return [];
  const parts = PARTS_OF_GLIBC.map((name): [string, string] => [name, join(dirname(library), name)]);
  return parts.filter(([, path]) => existsSync(path));
}
