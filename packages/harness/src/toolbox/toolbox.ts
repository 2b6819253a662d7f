/**
 * Owns the toolbox: interpreters and a few programs of this host in one directory, with a loader and every library
 * they need, made to start from one fixed place. Mounted there read-only it works in any root filesystem of this
 * architecture, whatever C library it has or lacks. Built once per set of programs, into the user's cache.
 * Does not mount anything and does not hold harnesses.
 *
 * X1  A toolbox is whole or absent: it is made beside its place and renamed.
 * X2  Its programs take no library from the place they run in; what they start takes none from the toolbox.
 */
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { MortiseError } from "@mortise/contracts";
import { defaultCache } from "../runtime/install.js";
import { elfNeeds, searchAsItsProgram, startWithOwnLibraries } from "./elf.js";
import { type LoadedLibraries, loadedLibraries } from "./libraries.js";
import { copyPython, type PythonHome, pythonHome } from "./python-home.js";

/**
 * Where a toolbox is mounted. Short, because the names of loader and libraries take the place of the loader's name
 * in each program: 27 bytes on arm64, 28 on x64.
 */
export const TOOLBOX_TARGET = "/opt/rt";
const LOADER = "ld";
const LIBRARIES = "lib";
/** Changes when the same files are laid out in another way. */
const LAYOUT = "2";
const PROBE = fileURLToPath(new URL("../../programs/probe.cjs", import.meta.url));

/** Places inside, as the sandbox sees them. */
export const TOOLBOX = {
  node: `${TOOLBOX_TARGET}/bin/node`,
  python: `${TOOLBOX_TARGET}/python/bin/python3`,
  /** Programs for places that lack them, last on PATH. */
  programs: `${TOOLBOX_TARGET}/programs`,
  probe: `${TOOLBOX_TARGET}/probe.cjs`,
} as const;

export interface ToolboxOptions {
  /** Path of the Python to bring along; none when absent. */
  readonly python?: string;
  /** Programs by name; those this host lacks are left out. */
  readonly programs: readonly string[];
  /** `$MORTISE_CACHE` or `~/.cache/mortise` when absent. */
  readonly cacheDirectory?: string;
}

export interface Toolbox {
  /** On this host, to be mounted at TOOLBOX_TARGET. */
  readonly directory: string;
  /** Programs it has, of those asked for. */
  readonly programs: readonly string[];
}

/** @throws MortiseError MORTISE_HARNESS_RUNTIME when this host's programs cannot be made to start elsewhere */
export async function ensureToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const programs = new Map(options.programs.flatMap((name) => programsNamed(name)));
  const python = options.python === undefined ? undefined : await pythonHome(options.python);
  const root = join(options.cacheDirectory ?? defaultCache(), "toolboxes");
  const directory = join(root, identity([process.execPath, ...programs.values(), ...pythonFiles(python)]));
  const answer = { directory, programs: [...programs.keys()] };
  if (existsSync(directory)) return answer;
  mkdirSync(root, { recursive: true });
  const beside = mkdtempSync(`${directory}.partial-`);
  try {
    fill(beside, programs, python);
    place(beside, directory);
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
  return answer;
}

function pythonFiles(python: PythonHome | undefined): string[] {
  return python === undefined ? [] : [python.program, ...python.modules];
}

/** Changes with any of the programs: an updated interpreter gets a toolbox of its own. */
function identity(files: readonly string[]): string {
  const hash = createHash("sha256").update(`${LAYOUT}\n${TOOLBOX_TARGET}\n`);
  for (const file of files) {
    const { size, mtimeMs, ino } = statSync(file);
    hash.update(`${file}\0${size}\0${mtimeMs}\0${ino}\n`);
  }
  return hash.digest("hex").slice(0, 32);
}

function fill(
  directory: string,
  programs: ReadonlyMap<string, string>,
  python: PythonHome | undefined,
): void {
  const node = realpathSync(process.execPath);
  const loaded = loadedLibraries([node, ...programs.values(), ...pythonFiles(python)]);
  for (const name of ["bin", LIBRARIES, "programs"]) mkdirSync(join(directory, name));
  copyFileSync(loaded.loader, join(directory, LOADER));
  chmodSync(join(directory, LOADER), 0o755);
  copyLibraries(loaded, join(directory, LIBRARIES));
  copyFileSync(PROBE, join(directory, basename(PROBE)));
  bring(node, join(directory, "bin", "node"));
  for (const [name, file] of programs) bring(file, join(directory, "programs", name));
  if (python !== undefined) {
    const copied = copyPython(python, join(directory, "python"));
    rehome(copied.program);
    copied.modules.forEach(searchAsItsProgram);
  }
  // mkdtemp's own mode is for one user; the sandbox's is another.
  chmodSync(directory, 0o755);
}

/** Under the names programs ask for, whatever the files behind them are called. */
function copyLibraries({ libraries, loader }: LoadedLibraries, directory: string): void {
  for (const [name, path] of libraries) {
    const copy = join(directory, basename(name));
    if (realpathSync(path) === realpathSync(loader)) symlinkSync(`../${LOADER}`, copy);
    else {
      copyFileSync(path, copy);
      chmodSync(copy, 0o755);
      searchAsItsProgram(copy);
    }
  }
}

function bring(source: string, target: string): void {
  copyFileSync(source, target);
  chmodSync(target, 0o755);
  rehome(target);
}

/** A static program starts anywhere as it is. */
function rehome(program: string): void {
  if (elfNeeds(program)?.loader === undefined) return;
  try {
    startWithOwnLibraries(program, join(TOOLBOX_TARGET, LOADER), join(TOOLBOX_TARGET, LIBRARIES));
  } catch (cause) {
    throw new MortiseError({
      code: "MORTISE_HARNESS_RUNTIME",
      message: `${basename(program)} cannot be brought along: ${(cause as Error).message}`,
      cause,
    });
  }
}

/** X1; another process may have been quicker. */
function place(beside: string, directory: string): void {
  try {
    renameSync(beside, directory);
  } catch (error) {
    if (!existsSync(directory)) throw error;
  }
}

/** The program of this name that comes first on PATH, if there is one. */
function programsNamed(name: string): [string, string][] {
  const directories = (process.env.PATH ?? "").split(delimiter).filter((directory) => directory !== "");
  const file = directories.map((directory) => join(directory, name)).find(isProgram);
  return file === undefined ? [] : [[name, realpathSync(file)]];
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
