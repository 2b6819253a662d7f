/**
 * Owns getting a harness's runtime into the user's cache: `<cache>/harnesses/<name>/<version>`, obtained from
 * npm or PyPI once, without running any install script. Does not launch it, and never copies it anywhere else.
 *
 * R1  A runtime's directory is whole or absent: it is made beside its place and renamed.
 * R2  Nothing of the operator's home or project is changed.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { MortiseError } from "@mortise/contracts";
import type { HarnessAdapter, RuntimeSpec } from "../adapter.js";
import { PYTHON_PACKAGES } from "../python-launch.js";
import { runCommand } from "./command.js";
import { findPython, type Python } from "./python.js";

const INSTALL_TIMEOUT_MS = 900_000;

export interface Runtime {
  readonly directory: string;
  /** Whether it was obtained now. */
  readonly isFresh: boolean;
  /** Interpreter for Python runtimes, otherwise "". */
  readonly python: string;
}

export interface RuntimeOptions {
  /** The adapter's own folder, for its programs and for bundled runtimes. */
  readonly folder: string;
  /** `$MORTISE_CACHE` or `~/.cache/mortise` when absent. */
  readonly cacheDirectory?: string;
  readonly onProgress?: (line: string) => void;
}

type Packages = Extract<RuntimeSpec, { packages: unknown }>;

/** Runtimes being made ready by this process, by directory. */
const underWay = new Map<string, Promise<boolean>>();

/**
 * Asked for by several at once, a runtime is obtained once.
 * @throws MortiseError MORTISE_HARNESS_RUNTIME when it cannot be obtained here
 */
export async function ensureRuntime(adapter: HarnessAdapter, options: RuntimeOptions): Promise<Runtime> {
  const { runtime, name } = adapter;
  if (runtime.kind === "installed") return { directory: options.folder, isFresh: false, python: "" };
  if (runtime.kind === "bundled") {
    requireProbe(adapter, options.folder, runtime.probe);
    return { directory: options.folder, isFresh: false, python: "" };
  }
  const python = runtime.kind === "pypi" ? await findPython(runtime.python) : undefined;
  const root = join(options.cacheDirectory ?? defaultCache(), "harnesses", name);
  const directory = join(root, directoryName(adapter, python));
  const flight = underWay.get(directory) ?? makeReady(adapter, runtime, { directory, python, options });
  underWay.set(directory, flight);
  try {
    return { directory, isFresh: await flight, python: python?.path ?? "" };
  } finally {
    underWay.delete(directory);
  }
}

/** Compiled packages are for one version of Python. */
function directoryName({ version }: HarnessAdapter, python: Python | undefined): string {
  return python === undefined ? version : `${version}-python${python.version.join(".")}`;
}

interface Making {
  readonly directory: string;
  readonly python: Python | undefined;
  readonly options: RuntimeOptions;
}

/** @returns whether it was obtained now */
async function makeReady(adapter: HarnessAdapter, runtime: Packages, making: Making): Promise<boolean> {
  const { directory, options } = making;
  const isFresh = !existsSync(join(directory, runtime.probe));
  if (isFresh) {
    options.onProgress?.(`${adapter.name} ${adapter.version}: obtaining its runtime`);
    await obtain(adapter, runtime, making);
  }
  for (const program of adapter.programs)
    await bringUpToDate(join(options.folder, program), join(directory, program));
  return isFresh;
}

/** Harnesses may be running from it: a file that is the same is left alone, another one is replaced whole. */
async function bringUpToDate(source: string, target: string): Promise<void> {
  const wanted = await readFile(source);
  const present = await readFile(target).catch(() => undefined);
  if (present?.equals(wanted)) return;
  const beside = `${target}.${process.pid}`;
  await writeFile(beside, wanted, { mode: 0o644 });
  await rename(beside, target);
}

export function defaultCache(): string {
  return process.env.MORTISE_CACHE ?? join(homedir(), ".cache", "mortise");
}

/** R1; another process may have been quicker, and its runtime may be in use. */
async function obtain(
  adapter: HarnessAdapter,
  runtime: Packages,
  { directory, python }: Making,
): Promise<void> {
  await mkdir(dirname(directory), { recursive: true });
  const beside = await mkdtemp(`${directory}.partial-`);
  try {
    const { ok, output } =
      runtime.kind === "npm"
        ? await npmInstall(runtime.packages, beside)
        : await pipInstall(runtime.packages, beside, python!.path);
    if (!ok) throw unobtainable(adapter, output.trim().split("\n").slice(-5).join("\n  "));
    requireProbe(adapter, beside, runtime.probe);
    // mkdtemp's own mode is for one user; in a sandbox the harness runs as another.
    await chmod(beside, 0o755);
    if (existsSync(join(directory, runtime.probe))) return;
    await rm(directory, { recursive: true, force: true });
    await rename(beside, directory);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
}

/** R2: a manifest of its own, so that npm looks at no project above it. */
async function npmInstall(packages: Readonly<Record<string, string>>, directory: string) {
  const manifest = { private: true, dependencies: packages };
  await writeFile(join(directory, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const args = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  return runCommand("npm", args, { cwd: directory, timeoutMs: INSTALL_TIMEOUT_MS });
}

/**
 * Into a plain directory, which unlike a virtual environment may be moved and mounted elsewhere. Compiled now:
 * a launch from a read-only place would compile everything again.
 */
async function pipInstall(packages: Readonly<Record<string, string>>, directory: string, python: string) {
  const pins = Object.entries(packages).map(([name, version]) => `${name}==${version}`);
  const args = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--compile"];
  return runCommand(python, [...args, "--target", join(directory, PYTHON_PACKAGES), ...pins], {
    cwd: directory,
    timeoutMs: INSTALL_TIMEOUT_MS,
  });
}

function requireProbe(adapter: HarnessAdapter, directory: string, probe: string): void {
  if (!existsSync(join(directory, probe))) throw unobtainable(adapter, `it has no ${probe}`);
}

function unobtainable({ name, version }: HarnessAdapter, why: string): MortiseError {
  return new MortiseError({
    code: "MORTISE_HARNESS_RUNTIME",
    message: `${name} ${version} cannot be obtained: ${why}`,
    detail: { field: name },
  });
}
