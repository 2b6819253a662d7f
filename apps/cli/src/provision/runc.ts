/**
 * Owns finding the sandbox runtime: runc on PATH, the project's cache, Debian's package unpacked into the cache;
 * else Docker; else plain processes, which is said every time because they isolate nothing.
 * Does not start sandboxes and does not judge isolation beyond that (see services/sandbox-manager).
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { lastLine, run } from "./command.js";
import { ownSuite, unpackDebianPackage } from "./debian.js";

export interface SandboxRuntime {
  readonly backend: "runc" | "docker" | "process";
  /** Path of runc; its name where the backend does not use it. */
  readonly runc: string;
  readonly notes: readonly string[];
}

export const INSECURE_NOTE =
  "INSECURE: sandboxes are plain processes of this user; tests and agents can read and change this machine";

export interface RuntimeOptions {
  readonly cacheDirectory: string;
  readonly environment?: { readonly PATH?: string | undefined };
  readonly isRoot?: boolean;
  readonly platform?: NodeJS.Platform;
  readonly onProgress?: (line: string) => void;
}

/** Never rejects: the last choice always exists. */
export async function provisionSandboxRuntime(options: RuntimeOptions): Promise<SandboxRuntime> {
  const notes: string[] = [];
  const path = (options.environment ?? process.env).PATH ?? "";
  const runc = await provisionRunc(options, path, notes);
  if (runc !== undefined) return { backend: "runc", runc, notes };
  if (await answersDocker(path, notes)) return { backend: "docker", runc: "runc", notes };
  return { backend: "process", runc: "runc", notes: [...notes, INSECURE_NOTE] };
}

async function provisionRunc(
  options: RuntimeOptions,
  path: string,
  notes: string[],
): Promise<string | undefined> {
  if ((options.platform ?? process.platform) !== "linux") {
    notes.push("runc: needs Linux");
    return undefined;
  }
  if (!(options.isRoot ?? process.getuid?.() === 0)) {
    notes.push("runc: needs root for overlay mounts and network namespaces");
    return undefined;
  }
  const cached = join(options.cacheDirectory, "runc", "runc");
  for (const candidate of [findOnPath("runc", path), existsSync(cached) ? cached : undefined]) {
    if (candidate !== undefined && (await runs(candidate, notes))) return candidate;
  }
  options.onProgress?.("runc: trying the Debian package");
  try {
    await fillCache(options.cacheDirectory, cached);
    return cached;
  } catch (error) {
    notes.push(`runc: Debian package: ${(error as Error).message}`);
    return undefined;
  }
}

function findOnPath(name: string, path: string): string | undefined {
  const directories = path.split(delimiter).filter((directory) => directory !== "");
  return directories.map((directory) => join(directory, name)).find((file) => existsSync(file));
}

async function runs(runc: string, notes: string[]): Promise<boolean> {
  try {
    await run(runc, ["--version"], { timeoutMs: 10_000 });
    return true;
  } catch (error) {
    notes.push(`runc: ${runc} does not run (${(error as Error).message})`);
    return false;
  }
}

async function fillCache(cacheDirectory: string, cached: string): Promise<void> {
  const work = join(cacheDirectory, `.runc-${process.pid}`);
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  try {
    // Its own release first: what that one ships is linked against this machine's C library.
    const suites = [...new Set([await ownSuite(), "stable", "oldstable", "sid"])].filter(
      (suite) => suite !== undefined,
    );
    const places = ["usr/sbin/runc", "usr/bin/runc"];
    const binary = await unpackDebianPackage({ name: "runc", suites, accepts: () => true, places }, work);
    await mkdir(dirname(cached), { recursive: true });
    const staged = `${cached}.${process.pid}`;
    await copyFile(binary, staged);
    await rename(staged, cached);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function answersDocker(path: string, notes: string[]): Promise<boolean> {
  const docker = findOnPath("docker", path);
  if (docker === undefined) {
    notes.push("docker: not installed");
    return false;
  }
  try {
    await run(docker, ["version", "--format", "{{.Server.Version}}"], { timeoutMs: 10_000 });
    return true;
  } catch (error) {
    notes.push(`docker: ${lastLine((error as Error).message)}`);
    return false;
  }
}
