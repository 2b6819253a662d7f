/**
 * Owns the source releases tasks are made of: fetched from PyPI by pip, pinned by digest, kept in the user's cache.
 * Nothing of the projects is part of this repository.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultCache } from "@mortise/harness";

export interface Release {
  readonly name: string;
  readonly version: string;
  /** Of the source archive, `<name>-<version>.tar.gz`. */
  readonly sha256: string;
}

const FETCH_TIMEOUT_MS = 300_000;
/** Made by packaging: they tell the version and repeat the readme. */
const OF_PACKAGING = ["PKG-INFO", "*.egg-info"];

/** Path of the release's archive. Throws when PyPI cannot be reached or gives another file. */
export function archiveOf(release: Release): string {
  const { name, version, sha256 } = release;
  const cache = join(defaultCache(), "real-tasks");
  const archive = join(cache, `${name}-${version}.tar.gz`);
  if (!existsSync(archive)) fetch(release, cache, archive);
  const found = createHash("sha256").update(readFileSync(archive)).digest("hex");
  if (found !== sha256) throw new Error(`${archive} has the sha256 ${found}, not ${sha256}`);
  return archive;
}

/** Puts the release's files below `directory`, which exists. */
export function unpackRelease(release: Release, directory: string): void {
  const without = OF_PACKAGING.map((pattern) => `--exclude=${pattern}`);
  execFileSync("tar", ["-xzf", archiveOf(release), "-C", directory, "--strip-components=1", ...without]);
}

function fetch({ name, version, sha256 }: Release, cache: string, archive: string): void {
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), "mortise-release-"));
  try {
    const wanted = join(scratch, "wanted.txt");
    writeFileSync(wanted, `${name}==${version} --hash=sha256:${sha256}\n`);
    const options = ["--quiet", "--no-deps", "--no-binary=:all:", "--require-hashes", "--dest", scratch];
    execFileSync("python3", ["-m", "pip", "download", ...options, "--requirement", wanted], {
      stdio: "pipe",
      timeout: FETCH_TIMEOUT_MS,
    });
    const fetched = join(cache, `${name}-${version}-${process.pid}.partial`);
    writeFileSync(fetched, readFileSync(join(scratch, `${name}-${version}.tar.gz`)));
    renameSync(fetched, archive);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
